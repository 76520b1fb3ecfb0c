#include "tests/fake_cuda/kernel_operation.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "kernels/echo.h"
#include "kernels/element.h"
#include "kernels/fill.h"
#include "kernels/flag.h"
#include "kernels/gate.h"
#include "kernels/increment.h"
#include "kernels/null.h"

namespace launchgap::fake {

Parameters::Parameters(const kernels::KernelDescription& kernel, void* const* values) {
  for (std::size_t i = 0; i < kernel.parameter_bytes.size(); ++i) {
    const auto* const value = static_cast<const unsigned char*>(values[i]);
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    offsets_.push_back(bytes_.size());
    bytes_.insert(bytes_.end(), value, value + kernel.parameter_bytes[i]);
  }
}

void Parameters::run(const kernels::KernelDescription& kernel, kernels::LaunchShape shape) {
  std::vector<void*> arguments;
  for (const std::size_t offset : offsets_) arguments.push_back(bytes_.data() + offset);
  kernel.host(arguments.data(), shape);
}

Operation kernel_operation(const kernels::KernelDescription& kernel,
                           Parameters parameters,
                           kernels::LaunchShape shape) {
  Operation operation;
  if (&kernel == &kernels::null_kernel) return operation;
  if (&kernel == &kernels::fill_kernel) {
    auto* const out = parameters.get<void*>(0);
    const auto seed = parameters.get<unsigned long long>(2);
    const auto type = static_cast<kernels::ElementType>(parameters.get<int>(3));
    const auto distribution = static_cast<kernels::Distribution>(parameters.get<int>(4));
    const auto count = parameters.get<unsigned long long>(1);
    const std::size_t size = kernels::element_bytes(type);
    operation.writes = {range_of(out, count * size)};
    operation.signature = "fill " + std::to_string(operation.writes[0].begin) + " " +
                          std::to_string(count) + " " + std::to_string(seed) + " " +
                          std::to_string(static_cast<int>(type)) + " " +
                          std::to_string(static_cast<int>(distribution));
    operation.compute = [=, &kernel](std::size_t begin, std::size_t end) mutable {
      if (begin == 0 && end == count * size) return parameters.run(kernel, shape);
      for (std::size_t i = begin / size; i < (end + size - 1) / size; ++i) {
        kernels::store_element(out, i, type, kernels::element(seed, i, distribution));
      }
    };
    return operation;
  }
  if (&kernel == &kernels::increment_kernel) {
    operation.reads = {range_of(parameters.get<void*>(0), sizeof(unsigned))};
    operation.writes = operation.reads;
  } else {
    operation.unknown = true;
  }
  operation.compute = [=, &kernel](std::size_t, std::size_t) mutable {
    parameters.run(kernel, shape);
  };
  return operation;
}

std::function<bool(double, double)> gate(const kernels::KernelDescription& kernel,
                                         Parameters parameters) {
  return [=, &kernel](double begin_ns, double now_ns) mutable {
    const std::atomic_ref<unsigned> open(*parameters.get<unsigned*>(0));
    const auto timeout_ns = static_cast<double>(parameters.get<unsigned long long>(2));
    const bool is_open = open.load(std::memory_order_acquire) != 0;
    if (!is_open && now_ns - begin_ns <= timeout_ns) return true;
    // The host twin spins on its own clock; what is left of the time-out is nothing.
    parameters.set(2, 0ull);
    parameters.run(kernel, {});
    return false;
  };
}

std::vector<Range> gate_ranges(const Parameters& parameters) {
  return {range_of(parameters.get<void*>(0), sizeof(unsigned)),
          range_of(parameters.get<void*>(1), sizeof(unsigned))};
}

bool is_gate(const kernels::KernelDescription& kernel) {
  return &kernel == &kernels::gate_kernel;
}

std::optional<PolledKernel> polled_kernel(const kernels::KernelDescription& kernel,
                                          const Parameters& parameters) {
  const auto word = [&](std::size_t i) {
    return range_of(parameters.get<void*>(i), sizeof(unsigned));
  };
  if (&kernel == &kernels::flag_kernel) return PolledKernel{{}, {word(0)}, false};
  if (&kernel == &kernels::echo_kernel) return PolledKernel{{word(0)}, {word(1)}, true};
  return std::nullopt;
}

double moved_bytes(const Operation& operation) {
  double bytes = 0;
  for (const auto& range : operation.reads) bytes += static_cast<double>(range.bytes);
  for (const auto& range : operation.writes) bytes += static_cast<double>(range.bytes);
  return bytes;
}

}  // namespace launchgap::fake
