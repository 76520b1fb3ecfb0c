#include "harness/import/chrome_events.h"

#include <algorithm>
#include <array>

#include "harness/import/call_names.h"
#include "harness/import/decimal.h"

namespace launchgap::recording {
namespace {

enum class Category { other, kernel, copy, fill, graph, call, overhead, wait, range, memory };

Category category_named(std::string_view name) {
  struct Named {
    std::string_view name;
    Category category;
  };
  // Those in capitals are of 2020 to 2022.
  static constexpr auto kCategories = std::to_array<Named>({{"kernel", Category::kernel},
                                                            {"Kernel", Category::kernel},
                                                            {"gpu_memcpy", Category::copy},
                                                            {"Memcpy", Category::copy},
                                                            {"gpu_memset", Category::fill},
                                                            {"Memset", Category::fill},
                                                            {"cuda_runtime", Category::call},
                                                            {"cuda_driver", Category::call},
                                                            {"Runtime", Category::call},
                                                            {"Driver", Category::call},
                                                            {"overhead", Category::overhead},
                                                            {"cuda_sync", Category::wait},
                                                            {"user_annotation", Category::range},
                                                            {"cpu_instant_event", Category::memory},
                                                            {kWholeGraph, Category::graph}});
  for (const Named& one : kCategories) {
    if (one.name == name) return one.category;
  }
  return Category::other;
}

using activity::OverheadKind;

struct NamedOverhead {
  OverheadKind kind;
  std::string_view name;
  std::string_view part;
};
constexpr auto kOverheads = std::to_array<NamedOverhead>({
    {OverheadKind::compiler, "Driver Compiler", "Compiler"},
    {OverheadKind::buffer_flush, "Buffer Flush", "Flush"},
    {OverheadKind::instrumentation, "Instrumentation", "Instrumentation"},
    {OverheadKind::resource, "Resource", "Resource"},
    {OverheadKind::module_loading, "Runtime Triggered Module Loading", "Module Load"},
    {OverheadKind::lazy_function_loading, "Lazy Function Loading", "Lazy Function"},
    {OverheadKind::command_buffer_full, "Command Buffer Full", "Buffer Full"},
    {OverheadKind::buffer_request, "Activity Buffer Request", "Buffer Request"},
});

/// By Wait::type.
constexpr auto kWaits = std::to_array<std::string_view>(
    {"Synchronize", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"});

}  // namespace

void ChromeEvents::take(const ChromeEvent& event) {
  // Steps of the profiler and loading of data were operators before they were annotations. What the
  // GPU did of one has its name too.
  const bool annotates = (event[EventField::name].starts_with("ProfilerStep") ||
                          event[EventField::name].starts_with("enumerate(DataLoader)")) &&
                         event[EventField::category] != "gpu_user_annotation";
  const Category category =
      annotates ? Category::range : category_named(event[EventField::category]);
  if (category == Category::other) {
    if (event[EventField::category] == "python_function") ++process_.python_calls;
    return rows_.take(event);
  }
  if (category == Category::memory) return take_memory(event);
  if (event[EventField::phase] != "X") return;
  const auto begin = nanoseconds_of_us(event[EventField::time]);
  const auto duration = nanoseconds_of_us(event[EventField::duration]);
  std::int64_t end = 0;
  if (!begin || !duration || __builtin_add_overflow(*begin, *duration, &end))
    return recording_.leave_out("events without a time that can be");
  switch (category) {
    case Category::kernel:
      return take_kernel(event, *begin, end);
    case Category::copy:
    case Category::fill:
      return take_transfer(event, *begin, end, category == Category::fill);
    case Category::call:
      return take_call(event, *begin, end);
    case Category::graph:
      process_.trace.graphs.push_back({*begin, end, correlation(event), 0, stream(event)});
      return;
    case Category::overhead:
      process_.trace.overheads.push_back(
          {*begin, end, correlation(event), overhead_named(event[EventField::name])});
      return;
    case Category::wait:
      return take_wait(event, *begin, end);
    case Category::range:
      process_.ranges.push_back(
          {*begin, end, thread(event), process_.trace.name_index(event[EventField::name].c_str())});
      return;
    case Category::memory:
    case Category::other:
      return;
  }
}

std::uint32_t ChromeEvents::correlation(const ChromeEvent& event) {
  const auto number = natural_of(event[EventField::correlation]);
  if (!number && !event[EventField::correlation].empty())
    recording_.leave_out("correlation numbers that are none");
  return process_.correlation(number.value_or(0));
}

std::uint32_t ChromeEvents::stream(const ChromeEvent& event) {
  const auto gpu = natural_of(event[EventField::device].empty() ? event[EventField::pid]
                                                                : event[EventField::device]);
  return process_.stream({gpu.value_or(0),
                          natural_of(event[EventField::context]).value_or(0),
                          natural_of(event[EventField::stream]).value_or(0)});
}

std::uint32_t ChromeEvents::thread(const ChromeEvent& event) {
  if (first_pid_.empty()) {
    first_pid_ = event[EventField::pid];
    process_.pid = natural_of(event[EventField::pid]).value_or(0);
  }
  if (event[EventField::pid] == first_pid_) return process_.thread(event[EventField::tid]);
  return process_.thread(event[EventField::pid] + "/" + event[EventField::tid]);
}

void ChromeEvents::take_kernel(const ChromeEvent& event, std::int64_t begin, std::int64_t end) {
  activity::KernelRun kernel{begin,
                             end,
                             correlation(event),
                             stream(event),
                             process_.trace.name_index(event[EventField::name].c_str())};
  std::ranges::copy(event.grid, kernel.grid);
  std::ranges::copy(event.block, kernel.block);
  process_.trace.kernels.push_back(kernel);
}

void ChromeEvents::take_transfer(const ChromeEvent& event,
                                 std::int64_t begin,
                                 std::int64_t end,
                                 bool fill) {
  process_.trace.transfers.push_back({begin,
                                      end,
                                      natural_of(event[EventField::bytes]).value_or(0),
                                      correlation(event),
                                      stream(event),
                                      fill,
                                      !fill && event[EventField::name].starts_with(kCopyFromHost),
                                      !fill && event[EventField::name].starts_with(kCopyToHost)});
}

/// PyTorch's profiler has these where it was asked for them (`enable_cuda_sync_events`). Numbers
/// that are not known are below zero.
void ChromeEvents::take_wait(const ChromeEvent& event, std::int64_t begin, std::int64_t end) {
  activity::Wait wait{begin, end, correlation(event)};
  wait.type = wait_named(event[EventField::sync_kind]);
  const auto stream_of = [&](EventField field) {
    const auto number = natural_of(event[field]);
    if (!number || *number >= activity::Wait::kNoStream) return activity::Wait::kNoStream;
    return process_.stream({natural_of(event[EventField::device]).value_or(0),
                            natural_of(event[EventField::context]).value_or(0),
                            *number});
  };
  if (wait.type != 0) {
    wait.stream = stream_of(EventField::stream);
    wait.event_stream = stream_of(EventField::event_stream);
    if (const auto record = natural_of(event[EventField::event_record]))
      wait.recorded_by = process_.correlation(*record);
  }
  process_.trace.waits.push_back(wait);
}

void ChromeEvents::take_call(const ChromeEvent& event, std::int64_t begin, std::int64_t end) {
  of_amd_ = of_amd_ || is_of_amd(event[EventField::name]);
  const std::string name(without_version(event[EventField::name]));
  process_.trace.calls.push_back({begin,
                                  end,
                                  correlation(event),
                                  thread(event),
                                  process_.trace.name_index(name.c_str()),
                                  domain_of(name),
                                  purpose_of(name)});
}

/// PyTorch's own allocator gave memory (bytes above 0) or got it back. It does not say which stream
/// it is for.
void ChromeEvents::take_memory(const ChromeEvent& event) {
  constexpr std::string_view kOfCuda = "1";
  if (event[EventField::name] != "[memory]" || event[EventField::device_type] != kOfCuda) return;
  constexpr auto kMost = static_cast<std::int64_t>(kMostAllocationBytes);
  const auto at = nanoseconds_of_us(event[EventField::time]);
  const auto bytes = integer_of(event[EventField::bytes]);
  if (!at || !bytes) return recording_.leave_out("events without a time that can be");
  if (*bytes == 0 || *bytes > kMost || *bytes < -kMost)
    return recording_.leave_out("allocations without a size that can be");
  const std::uint64_t gpu = natural_of(event[EventField::device]).value_or(0);
  if (gpu > kMostGpu) return recording_.leave_out("allocations of a GPU that cannot be");
  process_.allocations.push_back(
      {*at,
       natural_of(event[EventField::address]).value_or(0),
       static_cast<std::uint64_t>(*bytes < 0 ? -*bytes : *bytes),
       gpu,
       0,
       thread(event),
       *bytes < 0 ? AllocationAction::release : AllocationAction::allocate});
}

std::string_view name_of_overhead(OverheadKind kind) {
  const auto known = std::ranges::find(kOverheads, kind, &NamedOverhead::kind);
  return known == kOverheads.end() ? "Unknown" : known->name;
}

std::string_view name_of_wait(std::uint32_t type) {
  return kWaits[type < kWaits.size() ? type : 0];
}

std::uint32_t wait_named(std::string_view name) {
  const auto found = std::ranges::find(kWaits, name);
  return found == kWaits.end() ? 0 : static_cast<std::uint32_t>(found - kWaits.begin());
}

OverheadKind overhead_named(std::string_view name) {
  const auto known = std::ranges::find_if(kOverheads, [&](const NamedOverhead& one) {
    return name.find(one.part) != std::string_view::npos;
  });
  return known == kOverheads.end() ? OverheadKind::other : known->kind;
}

std::string name_for_tools(std::string_view call) {
  if (!activity::is_launch(purpose_of(call))) return std::string(call);
  if (call.starts_with("__")) call.remove_prefix(2);
  if (call.ends_with("_ptsz")) call.remove_suffix(5);
  // Holistic Trace Analysis knows the driver's launches by one name alone.
  if (call == "cuLaunchKernelEx") call.remove_suffix(2);
  return std::string(call);
}

}  // namespace launchgap::recording
