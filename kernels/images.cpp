#include "kernels/images.h"

#include <cstring>

// Defined by the assembly that the build generates: one line
//   LAUNCHGAP_KERNEL_IMAGE(name, portable begin, portable end, native begin, native end)
// for each kernel.
#define LAUNCHGAP_KERNEL_IMAGE(name)                                                 \
  extern "C" const char name##_ptx_begin[], name##_ptx_end[], name##_fatbin_begin[], \
      name##_fatbin_end[];
#include "kernel_images.inc"
#undef LAUNCHGAP_KERNEL_IMAGE

namespace launchgap::kernels {

KernelImages images_of(const KernelDescription& kernel) {
  const auto view = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<std::size_t>(end - begin));
  };
#define LAUNCHGAP_KERNEL_IMAGE(entry)                        \
  if (std::strcmp(kernel.name, "launchgap_" #entry) == 0) {  \
    return {view(entry##_ptx_begin, entry##_ptx_end),        \
            view(entry##_fatbin_begin, entry##_fatbin_end)}; \
  }
#include "kernel_images.inc"
#undef LAUNCHGAP_KERNEL_IMAGE
  return {};
}

const std::vector<int>& native_architectures() {
  static const std::vector<int> architectures = {LAUNCHGAP_NATIVE_ARCHITECTURES};
  return architectures;
}

}  // namespace launchgap::kernels
