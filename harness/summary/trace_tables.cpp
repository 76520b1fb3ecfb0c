#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "harness/core/trace_state.h"
#include "harness/summary/findings.h"
#include "harness/summary/layout_kernels.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A kernel of a case, over all runs that traced everything and whose trace can be believed. Of a
/// recorded process it has a row of its own: what others recorded need not be the same job.
struct KernelSums {
  std::string device, case_name, grid, block;
  std::optional<int> replicate;  // of a recorded process
  std::optional<double> gpu_share;
  CountedKernels kernel;
};

struct MemorySums {
  std::string device, case_name, operation, pool;
  std::optional<std::int64_t> kind, bytes;
  std::uint64_t count = 0;
};

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return shape.size() == 3 ? fmt::format("{}x{}x{}", shape[0], shape[1], shape[2]) : "";
}

/// The entries of a list in the `trace` records that count.
template <class Entry, class See>
void see_entries(const SessionData& session,
                 std::optional<std::vector<Entry>> TraceRecord::*list,
                 See&& see) {
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    const bool counts =
        record.state == text_of(TraceState::ok) || record.state == text_of(TraceState::recorded);
    if (!counts || !trace.process_config.usual() || !(record.*list)) continue;
    for (const Entry& entry : *(record.*list)) see(trace, entry);
  }
}

/// From the first work of a recorded process on its GPU to the last.
std::optional<double> length_of_job(const SessionData& session, const TraceInfo& trace) {
  for (const auto& [key, data] : session.cases) {
    if (key.device != trace.device || key.name.benchmark != "recorded/job") continue;
    const auto own = data.of_run("step_ns", trace.replicate);
    if (!own.empty() && own.front() > 0) return own.front();
  }
  return std::nullopt;
}

void add_kernel(KernelSums& own, const CountedKernels& entry) {
  CountedKernels& sum = own.kernel;
  if (sum.count == 0) {
    sum = entry;
    return;
  }
  sum.count += entry.count;
  sum.total_ns += entry.total_ns;
  sum.shortest_ns = std::min(sum.shortest_ns, entry.shortest_ns);
  sum.longest_ns = std::max(sum.longest_ns, entry.longest_ns);
}

std::optional<double> mean_ns(const KernelSums& row) {
  const CountedKernels& kernel = row.kernel;
  if (kernel.count == 0) return std::nullopt;
  return static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.count);
}

std::vector<KernelSums> sum_kernels(const TableInputs& from) {
  std::map<std::pair<std::array<std::string, 5>, int>, KernelSums> sums;
  const TraceInfo* of_length = nullptr;
  std::optional<double> length;
  see_entries(
      from.session,
      &TraceRecord::kernels,
      [&](const TraceInfo& trace, const CountedKernels& entry) {
        const bool recorded = trace.record.state == text_of(TraceState::recorded);
        if (recorded && of_length != &trace) {
          of_length = &trace;
          length = length_of_job(from.session, trace);
        }
        const std::string name = trace.record.case_name.value_or("");
        const std::string grid = shape_text(entry.grid), block = shape_text(entry.block);
        KernelSums& own =
            sums[{{trace.device, name, entry.name, grid, block}, recorded ? trace.replicate : 0}];
        own.device = trace.device;
        own.case_name = name;
        own.grid = grid;
        own.block = block;
        add_kernel(own, entry);
        if (!recorded) return;
        own.replicate = trace.replicate;
        if (length) own.gpu_share = static_cast<double>(entry.total_ns) / *length;
      });
  std::vector<KernelSums> rows;
  for (auto& [key, own] : sums) rows.push_back(std::move(own));
  return rows;
}

std::vector<MemorySums> sum_memory(const TableInputs& from) {
  const auto text = [](const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  std::map<std::array<std::string, 6>, MemorySums> sums;  // by text, which is the order of rows
  see_entries(
      from.session, &TraceRecord::memory, [&](const TraceInfo& trace, const CountedMemory& entry) {
        const std::string& device = trace.device;
        const std::string name = trace.record.case_name.value_or("");
        const std::string pool = entry.pool != 0 ? "yes" : "no";
        MemorySums& own =
            sums[{device, name, entry.operation, text(entry.kind), pool, text(entry.bytes)}];
        own = {
            device, name, entry.operation, pool, entry.kind, entry.bytes, own.count + entry.count};
      });
  std::vector<MemorySums> rows;
  for (auto& [key, own] : sums) rows.push_back(std::move(own));
  return rows;
}

/// A number of the trace's clock.
auto of_clock(auto ClockFit::*number) {
  return if_any(
      [](const TraceInfo& trace) -> const auto& { return trace.record.clock; }, number);
}

auto recorded(auto TraceRecord::*field) {
  return [field](const TraceInfo& trace) { return trace.record.*field; };
}

auto of_kernel(auto CountedKernels::*field) {
  return [field](const KernelSums& row) { return row.kernel.*field; };
}

/// What was counted: of the canary in the record of a run.
auto trace_count(TraceCounts::Count TraceCounts::*count) {
  return [count](const TraceInfo& trace) {
    const auto& counts = trace.record.of_run() ? trace.record.canary : trace.record.counts;
    return counts ? (*counts).*count : std::nullopt;
  };
}

}  // namespace

Table parts_table() {
  return make_table<LaunchParts>(
      "parts.csv",
      "traced launch case and quantile",
      TableUse::details,
      [](const TableInputs& from) { return launch_parts(from.session); },
      {{"device_id", &LaunchParts::device},
       {"case", [](const LaunchParts& row) { return row.name.text(); }},
       {"quantile",
        "Of the time from the call to the end of the kernel: p50, p99 or p999.",
        &LaunchParts::quantile},
       {"samples", "Samples nearest to the quantile, whose means follow.", &LaunchParts::samples},
       {"call_ns", "In the call, before the kernel began.", &LaunchParts::call_ns},
       {"queue_ns", "After the call, before the kernel began.", &LaunchParts::queue_ns},
       {"kernel_ns", "The kernel.", &LaunchParts::kernel_ns},
       {"overhead_ns",
        "Of call and queue, what overhead records cover.",
        &LaunchParts::overhead_ns}});
}

Table flag_check_table() {
  return make_table<FlagCheck>(
      "flag_check.csv",
      "device",
      TableUse::details,
      [](const TableInputs& from) { return flag_checks(from.session); },
      {{"device_id", &FlagCheck::device},
       {"samples", "Launches whose flag and trace were compared.", &FlagCheck::samples},
       {"before_kernel",
        "Flags that the host saw before the trace says that the kernel began.",
        &FlagCheck::before_kernel},
       {"excess_p50_ns",
        "Median of the time from the kernel's begin until the host saw the flag.",
        &FlagCheck::excess_p50_ns},
       {"limit_ns",
        "What that may be: a flag's way there and back, and 1 µs.",
        &FlagCheck::limit_ns},
       {"agrees", "Whether flag and trace agree.", &FlagCheck::agrees}});
}

Table kernels_table() {
  return make_table<KernelSums>(
      "kernels.csv",
      "case, kernel, grid and block; of a recorded job also process",
      TableUse::details,
      sum_kernels,
      {{"device_id", &KernelSums::device},
       {"case", &KernelSums::case_name},
       {"kernel", "The name that the trace gives.", of_kernel(&CountedKernels::name)},
       {"grid", "Blocks in x, y and z.", &KernelSums::grid},
       {"block", "Threads of a block in x, y and z.", &KernelSums::block},
       {"only_layout",
        "yes: it computes nothing, and only brings a tensor into another layout or type, by its "
        "name; else no.",
        [](const KernelSums& row) { return only_changes_layout(row.kernel.name) ? "yes" : "no"; }},
       {"count", "How often it ran.", of_kernel(&CountedKernels::count)},
       {"total_ns", "All of its durations together.", of_kernel(&CountedKernels::total_ns)},
       {"mean_ns", "Their mean.", mean_ns},
       {"shortest_ns", "The shortest.", of_kernel(&CountedKernels::shortest_ns)},
       {"longest_ns", "The longest.", of_kernel(&CountedKernels::longest_ns)},
       {"replicate",
        "The process of a recorded job; empty: all traced runs together.",
        &KernelSums::replicate},
       {"gpu_share",
        "The same as a share of the recorded job's length; where kernels overlap, each counts.",
        &KernelSums::gpu_share},
       {"p50_ns", "Their median.", of_kernel(&CountedKernels::p50_ns)},
       {"p99_ns",
        "p99, which the slowest 1 % exceed; empty below a hundred.",
        of_kernel(&CountedKernels::p99_ns)},
       {"cv", "Standard deviation divided by the mean.", of_kernel(&CountedKernels::cv)},
       {"first_call_ns",
        "What its first launch call took.",
        of_kernel(&CountedKernels::first_call_ns)},
       {"later_call_ns",
        "Median of its other launch calls.",
        of_kernel(&CountedKernels::later_call_ns)},
       {"repeats",
        "Repetitions of the same work in which it ran; empty where none were found.",
        of_kernel(&CountedKernels::repeats)},
       {"early_ns",
        "Median of its time in one repetition, in the earlier half of them.",
        of_kernel(&CountedKernels::early_ns)},
       {"late_ns", "The same in the later half.", of_kernel(&CountedKernels::late_ns)},
       {"change_chance",
        "The chance that the halves differ so much or more where nothing changed.",
        of_kernel(&CountedKernels::change_chance)},
       {"slow_mode_share",
        "Where its times at one place of the work form two clusters, share of the longer.",
        of_kernel(&CountedKernels::slow_mode_share)},
       {"fast_mode_ns", "Median of the shorter ones.", of_kernel(&CountedKernels::fast_mode_ns)},
       {"modes_apart_ns",
        "By how much the longer ones take longer.",
        of_kernel(&CountedKernels::modes_apart_ns)}});
}

Table memory_table() {
  return make_table<MemorySums>(
      "memory.csv",
      "case and kind of allocation",
      TableUse::details,
      sum_memory,
      {{"device_id", &MemorySums::device},
       {"case", &MemorySums::case_name},
       {"operation", "`allocate` or `release`.", &MemorySums::operation},
       {"kind", "CUPTI's number: 1 pageable, 2 pinned, 3 device.", &MemorySums::kind},
       {"pool", "Whether it is of a pool: `yes`, `no`.", &MemorySums::pool},
       {"bytes", "Size.", &MemorySums::bytes},
       {"count", "How often.", &MemorySums::count}});
}

Table traces_table() {
  return make_table<TraceInfo>(
      "traces.csv",
      "traced run (`case` empty) and traced case",
      TableUse::details,
      [](const TableInputs& from) { return from.session.traces; },
      {{"device_id", &TraceInfo::device},
       {"process_config", [](const TraceInfo& trace) { return trace.process_config.text(); }},
       {"replicate", &TraceInfo::replicate},
       {"case",
        "The case; empty: the run, with the counts of its canary.",
        recorded(&TraceRecord::case_name)},
       {"state", "`ok`, or why the trace is not to be believed.", recorded(&TraceRecord::state)},
       {"reason", "The same in words.", recorded(&TraceRecord::reason)},
       {"launches", "Outermost launch calls.", trace_count(&TraceCounts::launches)},
       {"kernels", "Kernels.", trace_count(&TraceCounts::kernels)},
       {"joined", "Kernels that have their launch.", trace_count(&TraceCounts::joined)},
       {"kernels_without_launch",
        "Kernels that have none.",
        trace_count(&TraceCounts::kernels_without_launch)},
       {"launches_without_kernel",
        "Launches without a kernel.",
        trace_count(&TraceCounts::launches_without_kernel)},
       {"dropped", "Records that the source says it lost.", trace_count(&TraceCounts::dropped)},
       {"unknown", "Records of a kind that nobody asked for.", trace_count(&TraceCounts::unknown)},
       {"zero", "Records without a time.", trace_count(&TraceCounts::zero)},
       {"inverted", "Records that end before they begin.", trace_count(&TraceCounts::inverted)},
       {"early", "Kernels that begin before their launch.", trace_count(&TraceCounts::early)},
       {"duplicates",
        "Correlation numbers of more than one launch.",
        trace_count(&TraceCounts::duplicates)},
       {"overlap",
        "Kernels that begin before their launch returns: legitimate.",
        trace_count(&TraceCounts::overlap)},
       {"nested", "Launch calls inside another: legitimate.", trace_count(&TraceCounts::nested)},
       {"clock_uncertainty_ns",
        "How well both clocks were read.",
        of_clock(&ClockFit::uncertainty_ns)},
       {"clock_drift_ppm",
        "How fast the trace's clock moves against the host's.",
        of_clock(&ClockFit::drift_ppm),
        "ppm"},
       {"clock_step_ns", "A jump of one of the clocks; 0: none.", of_clock(&ClockFit::step_ns)},
       {"impossible", "Records that cannot be or are missing.", recorded(&TraceRecord::impossible)},
       {"doubtful", "Whether they are more than 1 in 1,000.", recorded(&TraceRecord::doubtful)},
       {"faults", "Which they are, in words.", recorded(&TraceRecord::faults)},
       {"conversion_error_ns",
        "By how much the conversion of the device's clock may be wrong.",
        recorded(&TraceRecord::conversion_error_ns)},
       {"canary_tries", "How often the canary was asked.", recorded(&TraceRecord::canary_tries)}});
}

}  // namespace launchgap
