// A kernel as the host sees it: the entry point in the device image, its parameters, and the same
// work as a plain function. The function is what the `host` device runs, what results are verified
// against, and what the fake CUDA driver of the tests executes.
#pragma once

#include <cstddef>
#include <span>

namespace launchgap::kernels {

/// A one-dimensional grid: `blocks` blocks of `threads` threads, each with so much shared memory
/// beside what the kernel has by itself.
struct LaunchShape {
  unsigned blocks = 1;
  unsigned threads = 1;
  unsigned shared_bytes = 0;
};

struct KernelDescription {
  const char* name;                              // entry point, without C++ mangling
  std::span<const std::size_t> parameter_bytes;  // size of each parameter, in order
  /// Does the whole grid's work; arguments[i] points to the value of parameter i, as in
  /// cuLaunchKernel.
  void (*host)(void* const* arguments, LaunchShape shape);
  /// Where there is no portable form: the least compute capability, as 90 for 9.0, that runs it in
  /// the native one. 0: both forms.
  int native_from = 0;
  int needs = 0;  // the least compute capability that runs any form; 0: all do
  int last = 0;   // the greatest: code of one architecture (sm_90a), or of a family; 0: none
  unsigned shared_bytes = 0;  // the most that a launch asks for
};

}  // namespace launchgap::kernels
