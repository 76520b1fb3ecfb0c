#include "kernels/scale_repeated.h"

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
