#include "device.h"

extern "C" __global__ void launchgap_scale_repeated(double* a,
                                                    const double* b,
                                                    int size,
                                                    int repetitions,
                                                    unsigned* arrivals) {
  for (int repetition = 1; repetition <= repetitions; ++repetition) {
    for (unsigned i = global_thread(); i < static_cast<unsigned>(size); i += grid_threads())
      a[i] = b[i] * 0.25;
    block_barrier();
    if (block_thread() == 0) {
      device_fence();
      atomic_increment(arrivals);
      const volatile unsigned* const arrived = arrivals;
      while (*arrived < repetition * grid_blocks()) {
      }
    }
    block_barrier();
  }
}
