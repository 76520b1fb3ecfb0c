// Every kernel of this folder. Each has a file of its own, which says what its parameters are and
// has both forms of it: device code, and the same work as a plain function.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/element.h"
#include "kernels/kernel.h"

namespace launchgap::kernels {

extern const KernelDescription null_kernel;            // does nothing
extern const KernelDescription increment_kernel;       // adds one to a counter
extern const KernelDescription fill_kernel;            // fills a matrix or tensor
extern const KernelDescription spin_kernel;            // keeps the device busy for a time
extern const KernelDescription gate_kernel;            // holds a stream until the host opens it
extern const KernelDescription flag_kernel;            // writes to host memory
extern const KernelDescription echo_kernel;            // answers what the host writes
extern const KernelDescription dependent_kernel;       // may overlap with its neighbours
extern const KernelDescription multiply_add_kernel;    // as fast as the units can
extern const KernelDescription scale_kernel;           // a quarter of each number
extern const KernelDescription scale_repeated_kernel;  // the same, many times in one launch

/// Sizes in bytes for which there is a kernel that takes so many bytes of arguments. Up to 4096
/// every GPU takes; 32764 are the limit of CUDA 12.1 and later on compute capability 7.0 and later.
std::span<const std::size_t> argument_sizes();
/// The kernel whose argument has `bytes` bytes, or null if there is none.
const KernelDescription* arguments_kernel(std::size_t bytes);

/// All of them.
std::span<const KernelDescription* const> all_kernels();

}  // namespace launchgap::kernels
