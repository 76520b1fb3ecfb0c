#include "device.h"

// The timer's coarse steps (up to 1 us) make single launches up to a step longer.
extern "C" __global__ void launchgap_spin(unsigned long long nanoseconds, unsigned* counter) {
  const unsigned long long begin = global_timer_ns();
  while (global_timer_ns() - begin < nanoseconds) {
  }
  if (counter && global_thread() == 0) atomic_increment(counter);
}
