// The fake driver's launches of kernels.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/kernel_operation.h"

namespace launchgap::fake {
namespace {

/// What the worker does for a kernel that writes where a host polls.
std::shared_ptr<ThreadWork> thread_work(Process& process,
                                        Context& context,
                                        const kernels::KernelDescription& kernel,
                                        const Parameters& parameters,
                                        const PolledKernel& polled) {
  auto work = std::make_shared<ThreadWork>();
  work->until_returned = polled.until_returned;
  // Memory that is being used is not given back.
  const auto used = std::make_shared<std::vector<BlockPointer>>();
  work->admit = [&process, &context, polled, used] {
    if (context.sticky != kSuccess) return false;
    for (const auto* ranges : {&polled.reads, &polled.writes}) {
      for (const auto& range : *ranges) {
        if (!process.addresses.accessible(range, context.index)) {
          context.fail(kIllegalAddress);
          return false;
        }
        used->push_back(process.addresses.holding(range));
      }
    }
    for (const auto& range : polled.reads) context.results.before_read(range);
    for (const auto& range : polled.writes) context.results.before_write(range, true);
    return true;
  };
  work->run = [&kernel, parameters = parameters, used]() mutable { parameters.run(kernel, {}); };
  return work;
}
struct LaunchOptions {
  bool cooperative = false;
  bool programmatic = false;
};

Result read_attributes(const LaunchConfig& config, LaunchOptions& options) {
  if (config.attributes == nullptr && config.attribute_count > 0) return kInvalidValue;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const LaunchAttribute& attribute = config.attributes[i];
    if (attribute.id == kLaunchCooperative) {
      options.cooperative = attribute.value.flag != 0;
    } else if (attribute.id == kLaunchProgrammatic) {
      options.programmatic = attribute.value.flag != 0;
    } else {
      return kInvalidValue;
    }
  }
  return kSuccess;
}

/// The blocks of a launch, and how many the device runs at
/// once.
struct Grid {
  unsigned long long blocks, threads, resident;

  Grid(const DeviceDescription& device, const KernelShape& shape)
      : blocks(1ull * shape.grid[0] * shape.grid[1] * shape.grid[2]),
        threads(1ull * shape.block[0] * shape.block[1] * shape.block[2]),
        resident(valid() ? static_cast<unsigned long long>(device.multiprocessors) *
                               static_cast<unsigned long long>(device.resident_blocks(threads))
                         : 0) {}

  bool valid() const {
    constexpr unsigned long long kMostThreads = 1024;
    return blocks > 0 && threads > 0 && threads <= kMostThreads;
  }
  bool fits() const { return blocks <= resident; }
  double waves() const {
    const unsigned long long whole = (blocks + resident - 1) / resident;
    return static_cast<double>(whole);
  }
  kernels::LaunchShape shape() const {
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(threads)};
  }
};

/// What makes it unlike a launch that only has an
/// operation's effect.
Item special_item(Process& process,
                  Context& context,
                  const kernels::KernelDescription& kernel,
                  const Parameters& parameters,
                  const Grid& grid) {
  Item item;
  if (is_gate(kernel)) {
    item.opened =
        [&process, &context, ranges = gate_ranges(parameters), opened = gate(kernel, parameters)](
            double begin_ns, double at_ns) {
          for (const auto& range : ranges) {
            if (!process.addresses.accessible(range, context.index)) context.fail(kIllegalAddress);
          }
          return context.sticky == kSuccess ? opened(begin_ns, at_ns)
                                            : std::optional(std::max(begin_ns, at_ns));
        };
  } else if (const auto polled = polled_kernel(kernel, parameters)) {
    item.thread_work = thread_work(process, context, kernel, parameters, *polled);
  } else if (needs_all_blocks(kernel) && !grid.fits()) {
    // Blocks that wait for others, which wait for room.
    item.work = [&context] { context.fail(kLaunchTimeout); };
  }
  return item;
}

Work work_of(const Process& process,
             const DeviceDescription& device,
             const kernels::KernelDescription& kernel,
             const Parameters& parameters,
             const KernelShape& shape,
             const Grid& grid) {
  Work work;
  work.kernel = shape;
  work.operation = kernel_operation(kernel, parameters, grid.shape());
  if (needs_all_blocks(kernel) && !device.launch.grid_barrier) {
    work.operation.compute = [compute = std::move(work.operation.compute),
                              arrivals = parameters.get<unsigned*>(4)](std::size_t begin,
                                                                       std::size_t end) {
      compute(begin, end);
      ++arrivals[1];
    };
  }
  work.work_ns =
      repetitions(kernel, parameters) * moved_bytes(work.operation) / device.bandwidth_gbs +
      multiplied_ns(kernel, parameters, grid.shape(), device) +
      (grid.waves() - 1) * device.launch.wave_ns;
  work.clocked_ns =
      grid.waves() * clocked_ns(kernel, parameters, device.launch.global_timer_ns, now_ns());
  if (const auto counter = counter_of_spin(kernel, parameters)) {
    const auto block = process.addresses.holding(*counter);
    work.polled = block && block->pinned_host();
  }
  return work;
}

/// By how much the call is later than one without arguments
/// of a kernel that is loaded.
double late_ns(Context& context, fake::Function& function, bool cooperative) {
  const LaunchDescription& launch = context.description.launch;
  double bytes = 0;
  for (const std::size_t size : function.kernel->parameter_bytes) {
    bytes += static_cast<double>(size);
  }
  double late = context.slowness() * bytes * launch.argument_ns_per_byte;
  if (!std::exchange(function.loaded, true)) late += context.draw(launch.lazy_ns);
  if (cooperative) late += context.draw(launch.cooperative_ns);
  return late;
}

Result launch_kernel(Call& call,
                     abi::Function function,
                     KernelShape shape,
                     LaunchOptions options,
                     Stream stream,
                     void** parameters,
                     void** extra) {
  return with_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    fake::Function* const found = context.find(function);
    if (found == nullptr) return kInvalidHandle;
    const DeviceDescription& device = context.description;
    const kernels::KernelDescription& kernel = *found->kernel;
    shape.name = found->recorded_name;
    const Grid grid(device, shape);
    if (!grid.valid() || extra != nullptr) return kInvalidValue;
    if (shape.shared_bytes > found->dynamic_shared_bytes) return kInvalidValue;
    if (parameters == nullptr && !kernel.parameter_bytes.empty()) return kInvalidValue;
    if (options.cooperative && !device.launch.cooperative) return kInvalidValue;
    if (options.cooperative && !grid.fits()) return kCooperativeLaunchTooLarge;
    constexpr int kFirstWithProgrammatic = 90;
    if (options.programmatic && device.capability() < kFirstWithProgrammatic) return kNotSupported;
    const Parameters copied(kernel, parameters);
    Item item = special_item(call.process, context, kernel, copied, grid);
    const bool special = item.opened || item.thread_work || item.work;
    Work work = work_of(call.process, device, kernel, copied, shape, grid);
    if (special) work.operation = {};
    if (options.programmatic) work.overlap_ns = device.launch.dependent_overlap_ns;
    const double late = late_ns(context, *found, options.cooperative);
    return call.process.launch(call, context, timeline, late, std::move(work), std::move(item));
  });
}

}  // namespace

EXPORT Result cuLaunchKernel(abi::Function function,
                             unsigned grid_x,
                             unsigned grid_y,
                             unsigned grid_z,
                             unsigned block_x,
                             unsigned block_y,
                             unsigned block_z,
                             unsigned shared_bytes,
                             Stream stream,
                             void** parameters,
                             void** extra) {
  Call call("cuLaunchKernel");
  const KernelShape shape{"", {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return launch_kernel(call, function, shape, {}, stream, parameters, extra);
}

EXPORT Result cuLaunchKernelEx(const LaunchConfig* config,
                               abi::Function function,
                               void** parameters,
                               void** extra) {
  Call call("cuLaunchKernelEx");
  if (config == nullptr) return call.returns(kInvalidValue);
  const KernelShape shape{"",
                          {config->grid_x, config->grid_y, config->grid_z},
                          {config->block_x, config->block_y, config->block_z},
                          config->shared_bytes};
  LaunchOptions options;
  if (const Result code = read_attributes(*config, options)) return call.returns(code);
  return launch_kernel(call, function, shape, options, config->stream, parameters, extra);
}

EXPORT Result cuLaunchCooperativeKernel(abi::Function function,
                                        unsigned grid_x,
                                        unsigned grid_y,
                                        unsigned grid_z,
                                        unsigned block_x,
                                        unsigned block_y,
                                        unsigned block_z,
                                        unsigned shared_bytes,
                                        Stream stream,
                                        void** parameters) {
  Call call("cuLaunchCooperativeKernel");
  const KernelShape shape{"", {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return launch_kernel(call,
                       function,
                       shape,
                       {.cooperative = true, .programmatic = false},
                       stream,
                       parameters,
                       nullptr);
}

}  // namespace launchgap::fake
