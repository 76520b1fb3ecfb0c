#include "device.h"

extern "C" __global__ void launchgap_gate(volatile unsigned* open,
                                          volatile unsigned* timed_out,
                                          unsigned long long timeout_ns) {
  const unsigned long long begin = global_timer_ns();
  while (*open == 0) {
    if (global_timer_ns() - begin > timeout_ns) {
      *timed_out = 1;
      return;
    }
  }
}
