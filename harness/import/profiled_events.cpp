#include "harness/import/profiled_events.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/import/call_names.h"
#include "harness/import/decimal.h"

namespace launchgap::recording {
namespace {

using activity::Domain;
using activity::Purpose;

/// The number behind "size:" in "size:112 dest:4".
std::optional<std::uint64_t> detail(std::string_view details, std::string_view key) {
  const std::size_t at = details.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  details.remove_prefix(at + key.size());
  return take_number<std::uint64_t>(details);
}

/// The three numbers behind "grid:" or "block:", or 1 for one that is missing or cannot be; 0 where
/// nothing is told.
void take_extent(std::string_view details, std::string_view key, std::int32_t (&extent)[3]) {
  constexpr std::uint64_t kMost = 0x7FFFFFFF;
  const std::size_t at = details.find(key);
  std::ranges::fill(extent, at == std::string_view::npos ? 0 : 1);
  if (at == std::string_view::npos) return;
  details.remove_prefix(at + key.size());
  for (std::int32_t& size : extent) {
    const auto number = take_number<std::uint64_t>(details);
    if (!number || *number > kMost) return;
    size = static_cast<std::int32_t>(*number);
    if (!details.starts_with(',')) return;
    details.remove_prefix(1);
  }
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> begins) {
  return std::ranges::any_of(begins, [&](std::string_view one) { return text.starts_with(one); });
}

/// "GPU_4_bfc" and "gpu_async_0" give out memory of GPU 4 and 0; "gpu_host_bfc" and "cpu" of none.
std::optional<std::uint64_t> gpu_of_allocator(std::string_view name) {
  if (!begins_with_any(name, {"GPU_", "gpu_", "xla_gpu_"}) ||
      name.find("host") != std::string_view::npos)
    return std::nullopt;
  const std::size_t digit = name.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  name.remove_prefix(digit);
  return take_number<std::uint64_t>(name);
}

/// "cuGraphLaunch" of "cuGraphLaunch (CudaGraph:12)".
std::string_view without_graph(std::string_view name) {
  return name.substr(0, name.find(" (CudaGraph:"));
}

/// Of the driver or the runtime: "cuLaunchKernel", "cudaMemcpyAsync".
bool is_function_of_cuda(std::string_view name) {
  return domain_of(name) == Domain::driver ||
         (name.starts_with("cuda") && name.size() > 4 && name[4] >= 'A' && name[4] <= 'Z');
}

/// Work of these names is no kernel, and a call of them launches none.
bool is_named_copy(std::string_view name) {
  return begins_with_any(name, {"Memcpy", "MEMCPY"});
}
bool is_named_fill(std::string_view name) {
  return begins_with_any(name, {"Memset", "MEMSET"});
}
bool is_named_memory(std::string_view name) {
  return begins_with_any(name,
                         {"MemoryAlloc", "MemoryFree", "MemoryResidency", "MemAlloc", "MemFree"});
}

}  // namespace

EventStat stat_named(std::string_view name) {
  struct Named {
    std::string_view name;
    EventStat stat;
  };
  static constexpr auto kStats = std::to_array<Named>({
      {"correlation_id", EventStat::correlation},
      {"context_id", EventStat::context},
      {"group_id", EventStat::group},
      {"step_num", EventStat::step},
      {"addr", EventStat::address},
      {"allocation_bytes", EventStat::bytes},
      {"allocator_name", EventStat::allocator},
      {"kernel_details", EventStat::kernel_details},
      {"memcpy_details", EventStat::copy_details},
      {"Memset_details", EventStat::fill_details},
      {"memset_details", EventStat::fill_details},
      {"memalloc_details", EventStat::memory_details},
      {"MemFree_details", EventStat::memory_details},
      {"memfree_details", EventStat::memory_details},
      {"MemoryResidency_details", EventStat::memory_details},
  });
  const auto known = std::ranges::find(kStats, name, &Named::name);
  return known == kStats.end() ? EventStat::other : known->stat;
}

void ProfiledEvent::set(EventStat stat, std::uint64_t number) {
  switch (stat) {
    case EventStat::correlation:
      correlation = number;
      break;
    case EventStat::context:
      context = number;
      break;
    case EventStat::group:
      group = number;
      break;
    case EventStat::step:
      step = number;
      break;
    case EventStat::address:
      address = number;
      break;
    case EventStat::bytes:
      bytes = number;
      break;
    default:
      break;
  }
}

void ProfiledEvent::set(EventStat stat, std::string_view text) {
  switch (stat) {
    case EventStat::allocator:
      allocator = text;
      return;
    case EventStat::kernel_details:
      kernel_details = text;
      return;
    case EventStat::copy_details:
      copy_details = text;
      return;
    case EventStat::fill_details:
      fill_details = text;
      return;
    case EventStat::memory_details:
      of_memory = true;
      return;
    default:
      break;
  }
  if (text.starts_with("$$")) text.remove_prefix(2);
  if (const auto number = natural_of(text)) set(stat, *number);
}

std::optional<GpuRow> gpu_row(std::string_view name) {
  for (const std::string_view begin : {"/device:GPU:", "/gpu:"}) {
    if (!name.starts_with(begin)) continue;
    name.remove_prefix(begin.size());
    const auto number = take_number<std::uint64_t>(name);
    if (number && *number <= kMostGpu) return GpuRow{*number, name};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> stream_of_line(std::string_view line) {
  constexpr std::string_view kBegin = "tream #";
  if (!begins_with_any(line, {"Stream #", "stream #"})) return std::nullopt;
  line.remove_prefix(kBegin.size() + 1);
  return take_number<std::uint64_t>(line);
}

bool ProfiledEvents::has_time(const ProfiledEvent& event) {
  if (event.begin_ns > 0 && event.end_ns >= event.begin_ns) return true;
  recording_.leave_out("events without a time that can be");
  return false;
}

std::uint32_t ProfiledEvents::name_index(std::string_view name) {
  text_.assign(name);
  return process_.trace.name_index(text_.c_str());
}

void ProfiledEvents::take_of_gpu(std::uint64_t gpu,
                                 std::uint64_t stream,
                                 const ProfiledEvent& event) {
  const bool copy = !event.copy_details.empty() || is_named_copy(event.name);
  const bool fill = !event.fill_details.empty() || is_named_fill(event.name);
  const bool kernel = !event.kernel_details.empty();
  if (!kernel && !copy && !fill && (event.of_memory || is_named_memory(event.name))) return;
  if (event.name.empty() || event.end_ns == event.begin_ns)
    return recording_.leave_out("works of a GPU without a name or a duration");
  if (!has_time(event)) return;
  const std::uint32_t correlation = process_.correlation(event.correlation.value_or(0));
  const std::uint32_t index = process_.stream({gpu, event.context, stream});
  activity::Trace& trace = process_.trace;
  if (!kernel && (copy || fill)) {
    const std::string_view details = copy ? event.copy_details : event.fill_details;
    const auto bytes = detail(details, copy ? "size:" : "num_bytes:");
    trace.transfers.push_back({event.begin_ns,
                               event.end_ns,
                               bytes.value_or(0),
                               correlation,
                               index,
                               !copy,
                               copy && event.name.ends_with("H2D"),
                               copy && event.name.ends_with("D2H")});
  } else if (!kernel && event.name.starts_with("CudaGraph")) {
    trace.graphs.push_back({event.begin_ns, event.end_ns, correlation, 0, index});
  } else {
    activity::KernelRun own{
        event.begin_ns, event.end_ns, correlation, index, name_index(event.name)};
    take_extent(event.kernel_details, "grid:", own.grid);
    take_extent(event.kernel_details, "block:", own.block);
    trace.kernels.push_back(own);
  }
}

void ProfiledEvents::take_of_host(std::string_view thread, const ProfiledEvent& event) {
  constexpr std::string_view kOfPython = "$";  // "$threading.py:323 wait"
  if (event.name.starts_with(kOfPython)) ++process_.python_calls;
  const bool allocates = event.name == "MemoryAllocation" || event.name == "MemoryDeallocation";
  const bool of_interest = event.correlation || event.group || event.step || allocates;
  if (!of_interest || !has_time(event)) return;
  const std::uint32_t index = process_.thread(thread);
  if (event.group) {
    const auto [place, added] =
        groups_.try_emplace(*event.group, Group{event.begin_ns, event.end_ns, index});
    Group& group = place->second;
    if (event.begin_ns < group.begin_ns) {
      group.begin_ns = event.begin_ns;
      group.thread = index;
    }
    group.end_ns = std::max(group.end_ns, event.end_ns);
  }
  if (event.step) {
    has_steps_ = true;
    process_.ranges.push_back({event.begin_ns,
                               event.end_ns,
                               index,
                               name_index(fmt::format("ProfilerStep#{}", *event.step))});
  }
  if (allocates) return take_allocation(index, event);
  if (event.correlation) take_call(index, event);
}

/// The profiler is called back at each function of the driver that launches, copies or fills. In
/// files of until 2024 the call bears the kernel's name, and no stat says what it is for.
void ProfiledEvents::take_call(std::uint32_t thread, const ProfiledEvent& event) {
  const std::string_view name = without_graph(event.name);
  if (is_of_amd(name))
    throw Error(
        "it is of an AMD GPU (its calls begin with hip): launchgap reads those of NVIDIA's");
  Purpose purpose = Purpose::other;
  bool told = true;
  if (is_function_of_cuda(name)) {
    purpose = purpose_of(name);
  } else if (!event.kernel_details.empty()) {
    purpose = Purpose::launch;
  } else if (!event.copy_details.empty() || is_named_copy(name)) {
    purpose = Purpose::copy;
  } else if (!event.fill_details.empty() || is_named_fill(name)) {
    purpose = Purpose::fill;
  } else if (event.of_memory || is_named_memory(name)) {
    purpose = name.find("Free") == std::string_view::npos ? Purpose::allocate : Purpose::release;
  } else {
    told = false;
  }
  activity::Trace& trace = process_.trace;
  if (!told) untold_.push_back({static_cast<std::uint32_t>(trace.calls.size()), event.group});
  if (is_launch(purpose) && event.group) groups_.at(*event.group).launches = true;
  const bool has_name = purpose != Purpose::launch || is_function_of_cuda(name);
  trace.calls.push_back({event.begin_ns,
                         event.end_ns,
                         process_.correlation(*event.correlation),
                         thread,
                         name_index(has_name ? without_version(name) : "cuLaunchKernel"),
                         is_function_of_cuda(name) ? domain_of(name) : Domain::driver,
                         purpose});
}

void ProfiledEvents::take_allocation(std::uint32_t thread, const ProfiledEvent& event) {
  const auto gpu = gpu_of_allocator(event.allocator);
  if (!gpu) return recording_.leave_out("allocations and releases of memory of the host");
  if (*gpu > kMostGpu) return recording_.leave_out("allocations of a GPU that cannot be");
  if (!event.address || !event.bytes || *event.bytes == 0 || *event.bytes > kMostAllocationBytes)
    return recording_.leave_out("allocations without an address and a size that can be");
  process_.allocations.push_back(
      {event.begin_ns,
       *event.address,
       *event.bytes,
       *gpu,
       0,
       thread,
       event.name == "MemoryAllocation" ? AllocationAction::allocate : AllocationAction::release});
}

void ProfiledEvents::finish() {
  resolve_calls();
  if (!has_steps_) make_steps();
  remark_on_copies();
}

/// What a call started says what it was for. One that started nothing bears the name of a kernel,
/// whose record is lost then.
void ProfiledEvents::resolve_calls() {
  if (untold_.empty()) return;
  activity::Trace& trace = process_.trace;
  std::unordered_map<std::uint32_t, Purpose> started;
  for (const activity::Transfer& transfer : trace.transfers)
    started[transfer.correlation] = transfer.fill ? Purpose::fill : Purpose::copy;
  for (const activity::Graph& graph : trace.graphs)
    started[graph.correlation] = Purpose::launch_graph;
  for (const activity::KernelRun& kernel : trace.kernels)
    started[kernel.correlation] = Purpose::launch;
  for (const Untold& own : untold_) {
    activity::Call& call = trace.calls[own.call];
    const auto known = started.find(call.correlation);
    call.purpose = known == started.end() ? Purpose::launch : known->second;
    if (call.purpose == Purpose::launch) call.id = name_index("cuLaunchKernel");
    if (is_launch(call.purpose) && own.group) groups_.at(*own.group).launches = true;
  }
}

/// A group of which nothing was launched is none of a step: the iterator's, a function's alone.
void ProfiledEvents::make_steps() {
  for (const auto& [number, group] : groups_) {
    if (!group.launches) continue;
    process_.ranges.push_back({group.begin_ns,
                               group.end_ns,
                               group.thread,
                               name_index(fmt::format("ProfilerStep#{}", number))});
  }
}

/// The profiler may have lost the kernels of a GPU, and says nothing of that.
void ProfiledEvents::remark_on_copies() {
  process_.may_be_partial = true;
  std::set<std::uint64_t> with_kernels, with_copies;
  const auto add = [&](const auto& records, std::set<std::uint64_t>& gpus) {
    for (const auto& record : records) gpus.insert(process_.streams[record.stream].gpu);
  };
  add(process_.trace.kernels, with_kernels);
  add(process_.trace.graphs, with_kernels);
  add(process_.trace.transfers, with_copies);
  for (const std::uint64_t gpu : with_copies) {
    if (with_kernels.contains(gpu)) continue;
    recording_.remarks.push_back(
        fmt::format("GPU {} has copies and no kernels: whether it was idle is not known", gpu));
  }
}

}  // namespace launchgap::recording
