// What the project's kernels read and write.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/kernels.h"
#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

/// A kernel's parameters, copied as a launch does.
class Parameters {
 public:
  Parameters(const kernels::KernelDescription& kernel, void* const* values);

  template <typename T>
  T get(std::size_t i) const {
    T value;
    __builtin_memcpy(&value, bytes_.data() + offsets_[i], sizeof value);
    return value;
  }

  template <typename T>
  void set(std::size_t i, T value) {
    __builtin_memcpy(bytes_.data() + offsets_[i], &value, sizeof value);
  }

  void run(const kernels::KernelDescription& kernel, kernels::LaunchShape shape);

 private:
  std::vector<unsigned char> bytes_;
  std::vector<std::size_t> offsets_;
};

/// The launch of any kernel but the gate and those of the worker.
Operation kernel_operation(const kernels::KernelDescription& kernel,
                           Parameters parameters,
                           kernels::LaunchShape shape);

/// For Item::opened. One that waited for longer than its time-out opens and says so.
std::function<std::optional<double>(double, double)> gate(const kernels::KernelDescription& kernel,
                                                          Parameters parameters);

/// The flags that a gate reads and writes.
std::vector<Range> gate_ranges(const Parameters& parameters);

inline bool is_gate(const kernels::KernelDescription& kernel) {
  return &kernel == &kernels::gate_kernel;
}

/// A kernel for hosts that poll mapped memory: the worker runs it.
struct PolledKernel {
  std::vector<Range> reads;
  std::vector<Range> writes;
  bool until_returned;  // it takes as long as its host twin
};

/// None for other kernels.
std::optional<PolledKernel> polled_kernel(const kernels::KernelDescription& kernel,
                                          const Parameters& parameters);

/// The counter of a kernel that a host may watch without calling the driver; none for others.
std::optional<Range> counter_of_spin(const kernels::KernelDescription& kernel,
                                     const Parameters& parameters);

/// What a kernel takes by its own clock, on a device as fast or slow as any. It learns what a cycle
/// takes from two steps of the global timer, each of `step_ns`, so no wait is shorter than up to
/// the second step after `at_ns`.
double clocked_ns(const kernels::KernelDescription& kernel,
                  const Parameters& parameters,
                  double step_ns,
                  double at_ns);

/// How often a kernel does its operation.
double repetitions(const kernels::KernelDescription& kernel, const Parameters& parameters);

/// What a kernel that computes in registers takes for that.
double multiplied_ns(const kernels::KernelDescription& kernel,
                     const Parameters& parameters,
                     kernels::LaunchShape shape,
                     const DeviceDescription& device);

/// Whether its blocks wait for each other, so all of them must be on the device.
inline bool needs_all_blocks(const kernels::KernelDescription& kernel) {
  return &kernel == &kernels::scale_repeated_kernel;
}

/// Bytes that the operation moves, for its time.
double moved_bytes(const Operation& operation);

}  // namespace launchgap::fake
