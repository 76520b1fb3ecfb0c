#include "harness/trace/case_trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace launchgap {
namespace {

using activity::Call;
using activity::KernelRun;

std::optional<std::size_t> index_of(const Block& block, std::string_view metric) {
  const auto found = std::ranges::find(block.metrics(), metric);
  if (found == block.metrics().end()) return std::nullopt;
  return static_cast<std::size_t>(found - block.metrics().begin());
}

}  // namespace

CaseTrace::CaseTrace(Tracer& tracer, TracedAs as, int operations, std::int64_t scatter_ns)
    : tracer_(tracer), as_(as), operations_(operations), scatter_ns_(scatter_ns), clock_([&tracer] {
        return tracer.clock_ns();
      }) {}

/// By force, since the device is idle: what came later would pass for a part of the first block.
void CaseTrace::begin() {
  tracer_.collect(trace_, true);
  trace_.clear();
  clock_.bracket();
}

std::vector<Column> CaseTrace::finish(const Block& block) {
  clock_.bracket();
  const SampleWindows windows(block, clock_);
  TracedValues values = collect(windows);
  note(windows);
  samples_ += windows.size();
  samples_without_records_ += values.samples_without_records;
  missing_records_ += values.missing_records;
  impossible_calls_ += values.impossible_calls;
  expected_records_ += values.expected_records;
  spoilt_samples_ += values.spoilt_samples();
  allocations_joined_ += values.allocations_joined;
  kernels_per_sample_ = values.kernels_per_sample;
  if (tracer_.level() != TraceLevel::all) return {};
  add_flag_column(block, values.columns);
  return std::move(values.columns);
}

/// Of these, every launch has one kernel. Launches of the others may be captured into graphs.
bool CaseTrace::each_launch_has_its_kernel() const {
  const bool launches_alone = as_ == TracedAs::launch || as_ == TracedAs::burst;
  return launches_alone && tracer_.level() >= TraceLevel::kernels;
}

std::int64_t CaseTrace::scatter_of_block(const SampleWindows& windows) const {
  return scatter_of_launches(launch_times(
      trace_, joined_, [&](std::int64_t ns) { return windows.sample_at(ns).has_value(); }));
}

/// Records that come late are waited for, but not for ever: what is still missing then is counted.
/// The block's error of conversion is how well the clocks were read, how far they moved, and how
/// far launches scatter: the canary's, or the block's own, where that is larger.
TracedValues CaseTrace::collect(const SampleWindows& windows) {
  constexpr int kMostAttempts = 4;
  trace_.clear();
  for (int attempt = 0;; ++attempt) {
    tracer_.collect(trace_, attempt > 0);
    error_ns_ = clock_.uncertainty_ns() + clock_.change_ns() + scatter_ns_;
    joined_ = join(trace_, error_ns_);
    if (as_ == TracedAs::launch && joined_.counts.early > 0) {
      error_ns_ += std::max<std::int64_t>(0, scatter_of_block(windows) - scatter_ns_);
      joined_ = join(trace_, error_ns_);
    }
    TracedValues values = traced_values(
        {trace_, joined_, windows, as_, operations_, kernels_per_sample_}, tracer_.level());
    const bool complete =
        trace_.size() > 0 && values.samples_without_records == 0 &&
        (!each_launch_has_its_kernel() || joined_.counts.launches_without_kernel == 0);
    if (complete || windows.size() == 0 || attempt + 1 == kMostAttempts) {
      if (attempt > 0) ++late_blocks_;
      largest_error_ns_ = std::max(largest_error_ns_, error_ns_);
      return values;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// What belongs to samples, for the record; and the counts of everything.
void CaseTrace::note(const SampleWindows& windows) {
  any_records_ = any_records_ || trace_.size() > 0;
  JoinCounts counts = joined_.counts;
  if (tracer_.level() == TraceLevel::launches) counts.launches_without_kernel = 0;  // as asked
  counts_ += counts;
  for (const KernelRun& kernel : trace_.kernels) {
    const std::int64_t ns = kernel.end_ns - kernel.begin_ns;
    if (ns < 0 || !windows.sample_at(kernel.begin_ns)) continue;
    KernelUse& use = kernels_[{trace_.name(kernel.name),
                               {kernel.grid[0], kernel.grid[1], kernel.grid[2]},
                               {kernel.block[0], kernel.block[1], kernel.block[2]}}];
    use.shortest_ns = use.count == 0 ? ns : std::min(use.shortest_ns, ns);
    use.longest_ns = std::max(use.longest_ns, ns);
    use.total_ns += ns;
    ++use.count;
  }
  for (const activity::Memory& memory : trace_.memory) {
    if (windows.sample_at(memory.at_ns))
      ++memory_[{memory.release, memory.kind, memory.pool, memory.bytes}];
  }
  for (const activity::Overhead& overhead : trace_.overheads) {
    if (!windows.sample_at(overhead.begin_ns)) continue;
    OverheadUse& use = overheads_[overhead.kind];
    ++use.count;
    use.total_ns += std::max<std::int64_t>(0, overhead.end_ns - overhead.begin_ns);
  }
  for (const Call& call : trace_.calls) {
    if (windows.sample_at(call.begin_ns)) ++calls_[{call.domain, call.id}];
  }
}

/// What the host waited for the flag beyond the kernel's begin. Below zero it would have seen the
/// flag of a kernel that had not begun: by more than the clocks may be apart, that cannot be.
void CaseTrace::add_flag_column(const Block& block, std::vector<Column>& columns) {
  const auto flag = index_of(block, "flag_ns");
  if (!flag || as_ != TracedAs::launch) return;
  Column excess = empty_column("flag_excess_ns", block.size());
  const std::vector<double>& launch_times =
      std::ranges::find(columns, "launch_ns", &Column::metric)->values;
  for (std::size_t i = 0; i < block.size(); ++i) {
    excess.values[i] = block.values(*flag)[i] - launch_times[i];
    if (excess.values[i] >= -static_cast<double>(error_ns_) || std::isnan(excess.values[i]))
      continue;
    ++flags_before_kernel_;
    excess.values[i] = Block::kMissing;
    for (Column& column : columns) column.values[i] = Block::kMissing;
  }
  columns.push_back(std::move(excess));
}

TraceFaults CaseTrace::faults() const {
  // Three views of the same records: those that the source says it dropped, those that a sample
  // lacks, and those whose launch or kernel is alone.
  std::uint64_t missing = std::max(counts_.dropped, missing_records_);
  if (each_launch_has_its_kernel()) {
    missing = std::max(missing, counts_.launches_without_kernel + counts_.kernels_without_launch);
  }
  TraceFaults faults;
  faults.impossible =
      counts_.impossible() - counts_.dropped + missing + flags_before_kernel_ + impossible_calls_;
  faults.records = std::max({counts_.launches,
                             counts_.kernels,
                             static_cast<std::uint64_t>(expected_records_),
                             faults.impossible});
  faults.most_samples_are_spoilt = 2 * spoilt_samples_ > samples_;
  return faults;
}

std::string CaseTrace::describe_faults() const {
  std::vector<std::string> parts;
  if (counts_.impossible() > 0) {
    parts.push_back(
        fmt::format("of {} launches: {}", counts_.launches, counts_.describe_impossible()));
  }
  if (each_launch_has_its_kernel() &&
      counts_.launches_without_kernel + counts_.kernels_without_launch > 0) {
    parts.push_back(fmt::format("{} of {} launches have no kernel, {} of {} kernels no launch",
                                counts_.launches_without_kernel,
                                counts_.launches,
                                counts_.kernels_without_launch,
                                counts_.kernels));
  }
  if (samples_without_records_ > 0) {
    parts.push_back(fmt::format("{} of {} samples do not have the records that they should",
                                samples_without_records_,
                                samples_));
  }
  if (impossible_calls_ > 0) {
    parts.push_back(fmt::format("{} calls that allocate or give back end before they begin",
                                impossible_calls_));
  }
  if (flags_before_kernel_ > 0) {
    parts.push_back(fmt::format("the host saw {} flags before the kernels that raise them began",
                                flags_before_kernel_));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<TraceUnavailable> CaseTrace::invalid() const {
  if (!any_records_) {
    return TraceUnavailable(TraceState::no_records,
                            "nothing was recorded while the case ran, so the trace is not one");
  }
  if (clock_.step_ns() != 0) {
    return TraceUnavailable(
        TraceState::clock_step,
        fmt::format("the trace's clock jumped by {} us while the case ran: something set the "
                    "system's time",
                    clock_.step_ns() / 1000));
  }
  if (!faults().invalid()) return std::nullopt;
  const bool bad_times =
      counts_.impossible() > 0 || flags_before_kernel_ > 0 || impossible_calls_ > 0;
  return TraceUnavailable(counts_.dropped > 0 ? TraceState::dropped
                          : bad_times         ? TraceState::bad_timestamps
                                              : TraceState::unjoined,
                          describe_faults());
}

}  // namespace launchgap
