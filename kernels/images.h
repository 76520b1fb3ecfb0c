// Device code of the kernels, embedded into the binary by the build.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace launchgap::kernels {

struct KernelImages {
  std::string_view portable;  // PTX for compute capability 3.5, ends with a NUL byte; empty if
                              // built without clang
  std::string_view
      native;  // fatbin with machine code for native_architectures(); empty if built without nvcc
};

KernelImages images_of(const KernelDescription& kernel);

/// Compute capabilities, as 90 for 9.0, for which `native` holds machine code; it runs on those and
/// on later ones of the same major. On still later devices the driver compiles the fatbin's PTX.
const std::vector<int>& native_architectures();

}  // namespace launchgap::kernels
