// A quarter of each number: a[i] = b[i] / 4, one thread per element. The grid has at least so many
// threads. Parameters: double* a, const double* b, int size.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_scale(double* a, const double* b, int size) {
  const unsigned i = global_thread();
  const unsigned count = size > 0 ? static_cast<unsigned>(size) : 0;
  if (i < count) a[i] = b[i] * 0.25;
}

#else

#include "kernels/kernels.h"

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

#endif
