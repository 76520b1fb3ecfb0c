// Takes arguments of a given size in bytes, to see what copying them costs a launch.
// Parameter: one structure of so many bytes that begins with an unsigned* and ends with an
// unsigned: where the pointer is not null, the kernel stores the number there.
#pragma once

#include <span>

#include "kernels/kernel.h"

namespace launchgap::kernels {

/// Sizes in bytes for which there is a kernel. Up to 4096 every GPU takes; 32764 are the limit of
/// CUDA 12.1 and later on compute capability 7.0 and later.
std::span<const std::size_t> argument_sizes();

/// The kernel whose argument has `bytes` bytes, or null if there is none.
const KernelDescription* arguments_kernel(std::size_t bytes);

}  // namespace launchgap::kernels
