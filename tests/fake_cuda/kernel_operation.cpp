#include "tests/fake_cuda/kernel_operation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "kernels/convolution/convolution_rungs.h"
#include "kernels/element.h"
#include "kernels/kernels.h"
#include "kernels/matmul/matmul_rungs.h"
#include "kernels/multiply_add.h"
#include "tests/fake_cuda/convolution.h"
#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/kept_results.h"

namespace launchgap::fake {
namespace {

bool takes_time(const kernels::KernelDescription& kernel) {
  return &kernel == &kernels::spin_kernel || &kernel == &kernels::dependent_kernel;
}

bool only_takes_arguments(const kernels::KernelDescription& kernel) {
  const auto sizes = kernels::argument_sizes();
  return std::ranges::any_of(
      sizes, [&](std::size_t bytes) { return kernels::arguments_kernel(bytes) == &kernel; });
}

/// Of the rate of FP32 products, that of FP64 ones: by how many units a generation has.
double fp64_share(int capability) {
  static constexpr std::pair<int, double> kUnits[] = {
      {35, 3}, {37, 3}, {60, 2}, {70, 2}, {80, 2}, {90, 2}, {100, 2}, {52, 32}, {75, 32}};
  return 1 / found_in(kUnits, capability).value_or(64);
}

Range word(const Parameters& parameters, std::size_t i) {
  return range_of(parameters.get<void*>(i), sizeof(unsigned));
}

Range doubles(const Parameters& parameters, std::size_t i) {
  const auto count = static_cast<std::size_t>(std::max(0, parameters.get<int>(2)));
  return range_of(parameters.get<void*>(i), count * sizeof(double));
}

/// What the kernel reads and writes, as far as it is known.
void set_ranges(const kernels::KernelDescription& kernel,
                const Parameters& parameters,
                kernels::LaunchShape shape,
                Operation& operation) {
  if (&kernel == &kernels::increment_kernel) {
    operation.reads = operation.writes = {word(parameters, 0)};
  } else if (takes_time(kernel)) {
    if (parameters.get<void*>(1) == nullptr) return;
    operation.reads = operation.writes = {word(parameters, 1)};
  } else if (only_takes_arguments(kernel)) {
    if (parameters.get<void*>(0) != nullptr) operation.writes = {word(parameters, 0)};
  } else if (&kernel == &kernels::scale_kernel) {
    operation.reads = {doubles(parameters, 1)};
    operation.writes = {doubles(parameters, 0)};
    operation.signature = signature_of(
        "scale", operation.writes[0].begin, operation.reads[0].begin, operation.writes[0].bytes);
  } else if (&kernel == &kernels::scale_repeated_kernel) {
    const Range arrivals = range_of(parameters.get<void*>(4), 2 * sizeof(unsigned));
    operation.reads = {doubles(parameters, 1), arrivals};
    operation.writes = {doubles(parameters, 0), arrivals};
  } else if (&kernel == &kernels::multiply_add_kernel) {
    const std::size_t threads = std::size_t{shape.blocks} * shape.threads;
    operation.writes = {range_of(parameters.get<void*>(0), threads * sizeof(double))};
  } else {
    operation.unknown = true;
  }
}

/// A product, of which the rows are computed that somebody reads.
Operation rung_operation(const kernels::Rung& rung, const Parameters& parameters) {
  // A tensor map begins with the address.
  const auto a = parameters.get<const void*>(0), b = parameters.get<const void*>(1);
  auto* const c = parameters.get<void*>(2);
  const int m = parameters.get<int>(3), n = parameters.get<int>(4), k = parameters.get<int>(5);
  const auto bytes = [&rung](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
           kernels::element_bytes(rung.type);
  };
  Operation operation;
  operation.reads = {range_of(a, bytes(m, k)), range_of(b, bytes(k, n))};
  operation.writes = {range_of(c, bytes(m, n))};
  operation.signature = signature_of("rung", rung.name, a, b, c, m, n, k);
  operation.compute = [=, type = rung.type, row = bytes(1, n)](std::size_t begin, std::size_t end) {
    const auto first = static_cast<int>(begin / row);
    const auto last = static_cast<int>((end + row - 1) / row);
    kernels::multiply_on_host(a, b, c, first, last, n, k, type);
  };
  // Each rung of a type computes the same.
  const std::string what = signature_of("rung", int(rung.type), m, n, k);
  keep_result(operation, what, 2.0 * m * n * k);
  return operation;
}

Operation rung_operation(const kernels::ConvolutionRung& rung, const Parameters& parameters) {
  const auto sides = parameters.get<kernels::ConvolutionSides>(3);
  const auto size = [](int side) { return static_cast<std::size_t>(side); };
  const auto tensor = [&](int n, int c, int h, int w, std::size_t parameter) {
    return Tensor{{size(n), size(c), size(h), size(w)},
                  rung.channels_last ? Layout::nhwc : Layout::nchw,
                  rung.type,
                  parameters.get<const void*>(parameter)};
  };
  ConvolutionWork work;
  work.x = tensor(sides.n, sides.c, sides.h, sides.w, 0);
  work.w = tensor(sides.k, sides.c, sides.r, sides.s, 1);
  work.y = tensor(sides.n, sides.k, sides.out_h, sides.out_w, 2);
  work.pad_h = size(sides.pad_h), work.pad_w = size(sides.pad_w);
  work.stride_h = size(sides.stride_h), work.stride_w = size(sides.stride_w);
  work.dilation_h = size(sides.dilation_h), work.dilation_w = size(sides.dilation_w);
  return convolution_operation(work);
}

/// The repetitions of a kernel that only the last one shows.
void skip_repetitions(Parameters& parameters, kernels::LaunchShape shape) {
  const int repetitions = parameters.get<int>(3);
  const bool in_place = doubles(parameters, 0).overlaps(doubles(parameters, 1));
  if (repetitions <= 1 || in_place) return;
  *parameters.get<unsigned*>(4) += shape.blocks * static_cast<unsigned>(repetitions - 1);
  parameters.set(3, 1);
}

}  // namespace

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
    const auto step = parameters.get<unsigned long long>(5);
    const std::size_t size = kernels::element_bytes(type);
    operation.writes = {range_of(out, count * size)};
    operation.signature =
        signature_of("fill", out, count, seed, int(type), int(distribution), step);
    operation.compute = [=, &kernel](std::size_t begin, std::size_t end) mutable {
      if (begin == 0 && end == count * size) return parameters.run(kernel, shape);
      for (std::size_t i = begin / size; i < (end + size - 1) / size; ++i) {
        kernels::store_element(
            out, i, type, kernels::sparse_element(seed, i, distribution, type, step));
      }
    };
    return operation;
  }
  if (const kernels::Rung* const rung = kernels::rung_of(kernel))
    return rung_operation(*rung, parameters);
  if (const auto* const rung = kernels::convolution_rung_of(kernel))
    return rung_operation(*rung, parameters);
  set_ranges(kernel, parameters, shape, operation);
  // Its time is virtual.
  if (takes_time(kernel)) parameters.set(0, 0ull);
  operation.compute = [=, &kernel](std::size_t, std::size_t) mutable {
    Parameters once = parameters;
    if (&kernel == &kernels::scale_repeated_kernel) skip_repetitions(once, shape);
    once.run(kernel, shape);
  };
  return operation;
}

std::function<std::optional<double>(double, double)> gate(const kernels::KernelDescription& kernel,
                                                          Parameters parameters) {
  return [=, &kernel](double begin_ns, double now_ns) mutable -> std::optional<double> {
    const std::atomic_ref<unsigned> open(*parameters.get<unsigned*>(0));
    const auto timeout_ns = static_cast<double>(parameters.get<unsigned long long>(2));
    const bool is_open = open.load(std::memory_order_acquire) != 0;
    if (!is_open && now_ns - begin_ns <= timeout_ns) return std::nullopt;
    // The host twin spins on its own clock; what is left of the time-out is nothing.
    parameters.set(2, 0ull);
    parameters.run(kernel, {});
    return is_open ? std::max(begin_ns, now_ns) : begin_ns + timeout_ns;
  };
}

std::vector<Range> gate_ranges(const Parameters& parameters) {
  return {word(parameters, 0), word(parameters, 1)};
}

std::optional<PolledKernel> polled_kernel(const kernels::KernelDescription& kernel,
                                          const Parameters& parameters) {
  if (&kernel == &kernels::flag_kernel) return PolledKernel{{}, {word(parameters, 0)}, false};
  if (&kernel == &kernels::echo_kernel)
    return PolledKernel{{word(parameters, 0)}, {word(parameters, 1)}, true};
  return std::nullopt;
}

std::optional<Range> counter_of_spin(const kernels::KernelDescription& kernel,
                                     const Parameters& parameters) {
  if (&kernel != &kernels::spin_kernel) return std::nullopt;
  const Range counter = word(parameters, 1);
  return counter.begin == 0 ? std::nullopt : std::optional(counter);
}

double clocked_ns(const kernels::KernelDescription& kernel,
                  const Parameters& parameters,
                  double step_ns,
                  double at_ns) {
  if (!takes_time(kernel)) return 0;
  const auto wanted_ns = static_cast<double>(parameters.get<unsigned long long>(0));
  if (step_ns <= 0 || wanted_ns <= 0) return wanted_ns;
  return std::max(wanted_ns, 2 * step_ns - std::fmod(at_ns, step_ns));
}

double repetitions(const kernels::KernelDescription& kernel, const Parameters& parameters) {
  return &kernel == &kernels::scale_repeated_kernel ? std::max(0, parameters.get<int>(3)) : 1;
}

double multiplied_ns(const kernels::KernelDescription& kernel,
                     const Parameters& parameters,
                     kernels::LaunchShape shape,
                     const DeviceDescription& device) {
  if (const kernels::Rung* const rung = kernels::rung_of(kernel)) {
    const double products =
        1.0 * parameters.get<int>(3) * parameters.get<int>(4) * parameters.get<int>(5);
    return work_ns(2 * products, rung->rate * device.peak(rung->type_name).value_or(1));
  }
  if (const auto* const rung = kernels::convolution_rung_of(kernel)) {
    const auto sides = parameters.get<kernels::ConvolutionSides>(3);
    const double products =
        1.0 * sides.n * sides.k * sides.out_h * sides.out_w * sides.c * sides.r * sides.s;
    return work_ns(2 * products, rung->rate * device.peak(rung->type_name).value_or(1));
  }
  if (&kernel != &kernels::multiply_add_kernel) return 0;
  const double operations =
      kernels::multiply_add_operations(parameters.get<unsigned>(1)) * shape.blocks * shape.threads;
  const double fp32 = device.peak("fp32").value_or(1);
  const double tflops = parameters.get<int>(2) ? fp32 * fp64_share(device.capability()) : fp32;
  return work_ns(operations, tflops);
}

double moved_bytes(const Operation& operation) {
  double bytes = 0;
  for (const auto& range : operation.reads) bytes += static_cast<double>(range.bytes);
  for (const auto& range : operation.writes) bytes += static_cast<double>(range.bytes);
  return bytes;
}

}  // namespace launchgap::fake
