#include "kernels/scale.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(double*), sizeof(const double*), sizeof(int)};

void scale(void* const* arguments, LaunchShape) {
  double* const a = *static_cast<double* const*>(arguments[0]);
  const double* const b = *static_cast<const double* const*>(arguments[1]);
  const int size = *static_cast<const int*>(arguments[2]);
  for (int i = 0; i < size; ++i) a[i] = b[i] * 0.25;
}

}  // namespace

const KernelDescription scale_kernel{"launchgap_scale", kParameters, scale};

}  // namespace launchgap::kernels
