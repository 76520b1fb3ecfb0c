#include "device.h"

extern "C" __global__ void launchgap_spin(unsigned long long nanoseconds, unsigned* counter) {
  wait_ns(nanoseconds);
  if (counter && global_thread() == 0) atomic_increment(counter);
}
