// The work of scale.cu so many times over in one launch, with a barrier of the whole grid after
// each: what launches cost is what it spares. All blocks must be on the device at once. Parameters:
// double* a, const double* b, int size, int repetitions, unsigned* arrivals: two words, 0 before
// the launch; after it the first is blocks times repetitions, and the second how often a thread was
// seen beyond a barrier to which not all had come.
#ifdef LAUNCHGAP_DEVICE_CODE

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

#else

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(double*),
                                       sizeof(const double*),
                                       sizeof(int),
                                       sizeof(int),
                                       sizeof(unsigned*)};

void scale(void* const* arguments, LaunchShape shape) {
  double* const a = *static_cast<double* const*>(arguments[0]);
  const double* const b = *static_cast<const double* const*>(arguments[1]);
  const int size = *static_cast<const int*>(arguments[2]);
  const int repetitions = *static_cast<const int*>(arguments[3]);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (int i = 0; i < size; ++i) a[i] = b[i] * 0.25;
    **static_cast<unsigned* const*>(arguments[4]) += shape.blocks;
  }
}

}  // namespace

const KernelDescription scale_repeated_kernel{"launchgap_scale_repeated", kParameters, scale};

}  // namespace launchgap::kernels

#endif
