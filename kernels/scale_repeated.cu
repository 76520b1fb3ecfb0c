#include "device.h"

extern "C" __global__ void launchgap_scale_repeated(double* a,
                                                    const double* b,
                                                    int size,
                                                    int repetitions,
                                                    unsigned* arrivals) {
  const unsigned count = size > 0 ? static_cast<unsigned>(size) : 0;
  const volatile unsigned* const arrived = arrivals;
  for (int repetition = 1; repetition <= repetitions; ++repetition) {
    for (unsigned i = global_thread(); i < count; i += grid_threads()) a[i] = b[i] * 0.25;
    block_barrier();
    if (block_thread() == 0) {
      device_fence();
      atomic_increment(arrivals);
      while (*arrived < repetition * grid_blocks()) {
      }
    }
    block_barrier();
    // A barrier that lets threads through too early would only look fast. So now and then, in the
    // first repetition and at few others, each thread looks whether all blocks have come, and at an
    // element that the next thread but one block has written.
    if ((repetition & (repetition - 1)) == 0) {
      const unsigned other = count > 0 ? (global_thread() + block_threads()) % count : 0;
      const bool early = *arrived < repetition * grid_blocks();
      const bool unwritten =
          count > 0 && static_cast<const volatile double*>(a)[other] != b[other] * 0.25;
      if (early || unwritten) atomic_increment(arrivals + 1);
    }
  }
}
