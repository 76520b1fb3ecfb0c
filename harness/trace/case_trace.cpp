#include "harness/trace/case_trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/null.h"

namespace launchgap {
namespace {

using activity::Call;
using activity::KernelRun;
using activity::Purpose;

constexpr int kCanaryLaunches = 100;

Column column(std::string_view metric, std::size_t samples) {
  return {metric, std::vector<double>(samples, Block::kMissing)};
}

double between(std::int64_t from, std::int64_t to) {
  return static_cast<double>(to - from);
}

std::optional<std::size_t> index_of(const Block& block, std::string_view metric) {
  const auto found = std::ranges::find(block.metrics(), metric);
  if (found == block.metrics().end()) return std::nullopt;
  return static_cast<std::size_t>(found - block.metrics().begin());
}

/// From each call whose begin `belongs` until the first of its kernels begins.
template <class Belongs>
std::vector<double> launch_times(const activity::Trace& trace,
                                 const Joined& joined,
                                 Belongs&& belongs) {
  std::vector<double> times;
  for (const Launch& launch : joined.launches) {
    if (launch.kernel_count == 0 || !belongs(launch.begin_ns)) continue;
    const KernelRun& kernel = trace.kernels[joined.kernels_of(launch).front()];
    times.push_back(between(launch.begin_ns, kernel.begin_ns));
  }
  return times;
}

/// The time from the first kernel's begin to the last one's end that none of them covers. `kernels`
/// are by begin.
std::int64_t uncovered_ns(std::span<const KernelRun* const> kernels) {
  std::int64_t uncovered = 0, covered_until = kernels[0]->begin_ns;
  for (const KernelRun* kernel : kernels) {
    uncovered += std::max<std::int64_t>(0, kernel->begin_ns - covered_until);
    covered_until = std::max(covered_until, kernel->end_ns);
  }
  return uncovered;
}

}  // namespace

std::vector<std::string_view> traced_metrics(TracedAs as,
                                             const std::vector<std::string_view>& metrics) {
  switch (as) {
    case TracedAs::launch: {
      std::vector<std::string_view> own = {
          "api_record_ns", "launch_ns", "queue_ns", "kernel_ns", "overhead_ns"};
      if (std::ranges::find(metrics, "flag_ns") != metrics.end())
        own.emplace_back("flag_excess_ns");
      return own;
    }
    case TracedAs::burst:
      return {"api_record_ns", "kernel_ns", "gap_ns", "overhead_ns"};
    case TracedAs::work:
    case TracedAs::gated_work:
      return {"kernel_ns", "uncovered_ns", "kernels"};
    case TracedAs::chain:
      return {"kernel_ns", "uncovered_ns", "empty_queue_share"};
    case TracedAs::allocation:
      return {"api_record_ns", "free_record_ns"};
    case TracedAs::unseen:
      return {};
  }
  return {};
}

/// Which sample a time of the trace belongs to: each sample lasts until the next one begins.
class CaseTrace::SampleWindows {
 public:
  SampleWindows(const Block& block, const TraceClock& clock) {
    begins_.reserve(block.size());
    for (const std::int64_t start_ns : block.starts_ns())
      begins_.push_back(clock.trace_time(start_ns) - clock.uncertainty_ns());
    end_ = clock.trace_time(block.end_ns()) + clock.uncertainty_ns();
  }

  /// Nothing for times before the first sample (its warm-up) and after the last.
  std::optional<std::size_t> sample_at(std::int64_t time_ns) const {
    if (begins_.empty() || time_ns < begins_.front() || time_ns > end_) return std::nullopt;
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_, time_ns) - begins_.begin()) -
           1;
  }

  std::size_t size() const { return begins_.size(); }

 private:
  std::vector<std::int64_t> begins_;
  std::int64_t end_ = 0;
};

std::int64_t scatter_of_launches(std::vector<double> launch_ns) {
  constexpr std::size_t kFewest = 20;
  constexpr double kDeviations = 5, kMadOfNormal = 1.4826, kMost = 5'000;
  std::erase_if(launch_ns, [](double value) { return std::isnan(value); });
  if (launch_ns.size() < kFewest) return 0;
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  };
  const double centre = median(launch_ns);
  for (double& value : launch_ns) value = std::abs(value - centre);
  return static_cast<std::int64_t>(
      std::min(kMost, std::ceil(kDeviations * kMadOfNormal * median(launch_ns))));
}

bool CaseTrace::Values::expect(double found, double expected) {
  expected_records += expected;
  if (found == expected) return true;
  ++samples_without_records;
  missing_records += static_cast<std::uint64_t>(std::abs(found - expected));
  return false;
}

std::vector<double>& CaseTrace::Values::of(std::string_view metric) {
  const auto found = std::ranges::find(columns, metric, &Column::metric);
  if (found == columns.end())
    throw std::logic_error(fmt::format("{} is no traced metric of this case", metric));
  return found->values;
}

void CaseTrace::Values::spoil(std::size_t sample) {
  for (Column& column : columns) column.values[sample] = Block::kMissing;
}

std::uint64_t CaseTrace::Values::spoilt_samples() const {
  if (columns.empty()) return samples_without_records;
  return static_cast<std::uint64_t>(std::ranges::count_if(
      columns.front().values, [](double value) { return std::isnan(value); }));
}

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
  Values values = collect(windows);
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
CaseTrace::Values CaseTrace::collect(const SampleWindows& windows) {
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
    Values values = this->values(windows);
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

CaseTrace::Values CaseTrace::values(const SampleWindows& windows) const {
  const bool launches_alone = as_ == TracedAs::launch || as_ == TracedAs::burst;
  if (tracer_.level() == TraceLevel::launches)
    return launches_alone ? calls_alone(windows) : Values();
  switch (as_) {
    case TracedAs::launch:
      return launches(windows);
    case TracedAs::burst:
      return bursts(windows);
    case TracedAs::work:
    case TracedAs::gated_work:
      return work(windows);
    case TracedAs::chain:
      return chains(windows);
    case TracedAs::allocation:
      return tracer_.level() == TraceLevel::all ? allocations(windows) : Values();
    case TracedAs::unseen:
      return {};
  }
  return {};
}

/// Without kernels there is only this to check: every sample has its calls.
CaseTrace::Values CaseTrace::calls_alone(const SampleWindows& windows) const {
  std::vector<double> calls(windows.size(), 0);
  for (const Launch& launch : joined_.launches) {
    if (const auto sample = windows.sample_at(launch.begin_ns)) ++calls[*sample];
  }
  Values values;
  for (const double count : calls) values.expect(count, operations_);
  return values;
}

CaseTrace::Values CaseTrace::with_columns(std::size_t samples) const {
  Values values;
  for (const std::string_view metric : traced_metrics(as_, {}))
    values.columns.push_back(column(metric, samples));
  return values;
}

CaseTrace::Values CaseTrace::launches(const SampleWindows& windows) const {
  const std::size_t n = windows.size();
  Values values = with_columns(n);
  std::vector<double>&api_record = values.of("api_record_ns"),
  &launch_times = values.of("launch_ns"), &queue = values.of("queue_ns"),
  &kernels = values.of("kernel_ns"), &overhead = values.of("overhead_ns");
  std::vector<int> seen(n, 0);
  for (const Launch& launch : joined_.launches) {
    const Call& call = trace_.calls[launch.call];
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample || (launch.kernel_count == 0 && !launch.impossible)) continue;
    const std::size_t i = *sample;
    if (++seen[i] > 1 || launch.impossible) continue;
    const KernelRun& kernel = trace_.kernels[joined_.kernels_of(launch).front()];
    api_record[i] = between(call.begin_ns, call.end_ns);
    launch_times[i] = between(call.begin_ns, kernel.begin_ns);
    if (kernel.begin_ns >= call.end_ns) queue[i] = between(call.end_ns, kernel.begin_ns);
    kernels[i] = between(kernel.begin_ns, kernel.end_ns);
    overhead[i] = static_cast<double>(launch.overhead_ns);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!values.expect(seen[i], 1)) values.spoil(i);
  }
  return values;
}

/// What the host waited for the flag beyond the kernel's begin. Below zero it would have seen the
/// flag of a kernel that had not begun: by more than the clocks may be apart, that cannot be.
void CaseTrace::add_flag_column(const Block& block, std::vector<Column>& columns) {
  const auto flag = index_of(block, "flag_ns");
  if (!flag || as_ != TracedAs::launch) return;
  Column excess = column("flag_excess_ns", block.size());
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

CaseTrace::Values CaseTrace::bursts(const SampleWindows& windows) const {
  struct Burst {
    double launches = 0, calls_ns = 0, kernels_ns = 0, overhead_ns = 0;
    bool impossible = false;
    std::vector<const KernelRun*> kernels;
  };
  const std::size_t n = windows.size();
  std::vector<Burst> bursts(n);
  for (const Launch& launch : joined_.launches) {
    const Call& call = trace_.calls[launch.call];
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    Burst& burst = bursts[*sample];
    burst.impossible = burst.impossible || launch.impossible;
    if (launch.kernel_count == 0) continue;
    const KernelRun& kernel = trace_.kernels[joined_.kernels_of(launch).front()];
    burst.launches += 1;
    burst.calls_ns += between(call.begin_ns, call.end_ns);
    burst.kernels_ns += between(kernel.begin_ns, kernel.end_ns);
    burst.overhead_ns += static_cast<double>(launch.overhead_ns);
    burst.kernels.push_back(&kernel);
  }
  Values values = with_columns(n);
  std::vector<double>&api_record = values.of("api_record_ns"), &kernels = values.of("kernel_ns"),
  &gaps = values.of("gap_ns"), &overhead = values.of("overhead_ns");
  for (std::size_t i = 0; i < n; ++i) {
    Burst& burst = bursts[i];
    if (burst.impossible) continue;
    if (!values.expect(burst.launches, operations_)) continue;
    std::ranges::sort(burst.kernels, {}, &KernelRun::begin_ns);
    api_record[i] = burst.calls_ns / burst.launches;
    kernels[i] = burst.kernels_ns / burst.launches;
    if (burst.launches > 1)
      gaps[i] = static_cast<double>(uncovered_ns(burst.kernels)) / (burst.launches - 1);
    overhead[i] = burst.overhead_ns / burst.launches;
  }
  return values;
}

/// Every operation is the same call, so every sample has the same number of kernels: the number
/// that most have, in this block or in those before. One that has another lacks records, or has
/// some of somebody else's. A kernel belongs to the sample in which it was launched. The gate is
/// known by its launch, the sample's first, and not by its name: CUPTI before 13.4 Update 1 may
/// tell the name of a kernel whose module is gone.
CaseTrace::Values CaseTrace::work(const SampleWindows& windows) const {
  struct Work {
    bool gate_seen = false, impossible = false;
    std::vector<const KernelRun*> kernels;
  };
  const std::size_t n = windows.size();
  std::vector<Work> works(n);
  for (const Launch& launch : joined_.launches) {
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    Work& work = works[*sample];
    work.impossible = work.impossible || launch.impossible;
    if (as_ == TracedAs::gated_work && !std::exchange(work.gate_seen, true)) continue;
    for (const std::uint32_t kernel : joined_.kernels_of(launch))
      work.kernels.push_back(&trace_.kernels[kernel]);
  }
  std::map<std::size_t, std::size_t> samples_by_kernels;
  for (const Work& work : works) {
    const std::size_t kernels = work.kernels.size();
    if (!work.impossible && kernels % static_cast<std::size_t>(operations_) == 0)
      ++samples_by_kernels[kernels];
  }
  std::size_t usual = kernels_per_sample_;
  if (usual == 0 && !samples_by_kernels.empty()) {
    usual = std::ranges::max_element(samples_by_kernels, {}, [](const auto& entry) {
              return entry.second;
            })->first;
  }
  Values values = with_columns(n);
  std::vector<double>&kernel_time = values.of("kernel_ns"), &uncovered = values.of("uncovered_ns"),
  &kernel_count = values.of("kernels");
  values.kernels_per_sample = usual;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<const KernelRun*>& own = works[i].kernels;
    if (works[i].impossible) continue;
    if (!values.expect(static_cast<double>(own.size()),
                       static_cast<double>(std::max(usual, std::size_t{1})))) {
      continue;
    }
    std::ranges::sort(own, {}, &KernelRun::begin_ns);
    double total = 0;
    for (const KernelRun* kernel : own) total += between(kernel->begin_ns, kernel->end_ns);
    kernel_time[i] = total / operations_;
    uncovered[i] = static_cast<double>(uncovered_ns(own)) / operations_;
    kernel_count[i] = static_cast<double>(own.size()) / operations_;
  }
  return values;
}

/// Operations of one kernel each. A kernel found the queue empty if the launch that brought it
/// began when the kernel before it had ended: the device was waiting for the host. Of the kernels
/// of a graph that holds for the first alone.
CaseTrace::Values CaseTrace::chains(const SampleWindows& windows) const {
  constexpr std::int64_t kNoLaunch = 0;
  struct Operation {
    const KernelRun* kernel;
    std::int64_t launched_ns;
  };
  struct Chain {
    bool impossible = false;
    std::vector<Operation> operations;
  };
  const std::size_t n = windows.size();
  std::vector<Chain> chains(n);
  for (const Launch& launch : joined_.launches) {
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    chains[*sample].impossible = chains[*sample].impossible || launch.impossible;
    std::vector<const KernelRun*> kernels;
    for (const std::size_t kernel : joined_.kernels_of(launch))
      kernels.push_back(&trace_.kernels[kernel]);
    std::ranges::sort(kernels, {}, &KernelRun::begin_ns);
    for (const KernelRun* kernel : kernels) {
      chains[*sample].operations.push_back(
          {kernel, kernel == kernels.front() ? launch.begin_ns : kNoLaunch});
    }
  }
  Values values = with_columns(n);
  std::vector<double>&kernel_time = values.of("kernel_ns"), &uncovered = values.of("uncovered_ns"),
  &empty_queue = values.of("empty_queue_share");
  for (std::size_t i = 0; i < n; ++i) {
    auto& [impossible, operations] = chains[i];
    if (impossible) continue;
    if (!values.expect(static_cast<double>(operations.size()), operations_)) continue;
    std::ranges::sort(
        operations, {}, [](const Operation& operation) { return operation.kernel->begin_ns; });
    std::vector<const KernelRun*> kernels;
    double total = 0, found_empty = 0;
    std::int64_t busy_until = 0;
    for (const auto& [kernel, launched_ns] : operations) {
      kernels.push_back(kernel);
      total += between(kernel->begin_ns, kernel->end_ns);
      found_empty += launched_ns >= busy_until && launched_ns != kNoLaunch;
      busy_until = std::max(busy_until, kernel->end_ns);
    }
    kernel_time[i] = total / operations_;
    uncovered[i] = static_cast<double>(uncovered_ns(kernels)) / operations_;
    empty_queue[i] = found_empty / operations_;
  }
  return values;
}

/// One call of each kind per sample, each with its memory record where the library has such.
CaseTrace::Values CaseTrace::allocations(const SampleWindows& windows) const {
  const std::size_t n = windows.size();
  Values values = with_columns(n);
  std::vector<double>&api_record = values.of("api_record_ns"),
  &free_record = values.of("free_record_ns");
  std::map<std::uint32_t, const activity::Memory*> memory;
  for (const activity::Memory& record : trace_.memory) memory[record.correlation] = &record;
  struct Seen {
    int allocated = 0, released = 0, without_memory = 0;
    bool impossible = false;
  };
  std::vector<Seen> seen(n);
  for (const Call& call : trace_.calls) {
    const bool release = call.purpose == Purpose::release;
    if (call.purpose != Purpose::allocate && !release) continue;
    const auto sample = windows.sample_at(call.begin_ns);
    if (!sample) continue;
    Seen& own = seen[*sample];
    ++(release ? own.released : own.allocated);
    if (call.end_ns < call.begin_ns) {
      own.impossible = true;
      ++values.impossible_calls;
    }
    (release ? free_record : api_record)[*sample] = between(call.begin_ns, call.end_ns);
    const auto joined = memory.find(call.correlation);
    if (joined != memory.end() && joined->second->release == release) {
      ++values.allocations_joined;
    } else {
      ++own.without_memory;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Seen& own = seen[i];
    const int wrong = std::abs(own.allocated - 1) + std::abs(own.released - 1) +
                      (memory.empty() ? 0 : own.without_memory);
    if (!values.expect(2 - wrong, 2) || own.impossible) values.spoil(i);
  }
  return values;
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

namespace {

/// One try: 100 launches, each waited for.
class CanaryTry {
 public:
  CanaryTry(Tracer& tracer, Stream& stream, const Kernel& kernel)
      : tracer_(tracer),
        stream_(stream),
        kernel_(kernel),
        clock_([&tracer] { return tracer.clock_ns(); }) {}

  /// What is wrong, if anything.
  std::optional<TraceUnavailable> run(Canary& canary) {
    tracer_.collect(trace_, true);
    trace_.clear();
    clock_.bracket();
    for (int i = 0; i < kCanaryLaunches; ++i) {
      stream_.launch(kernel_, {1, 1}, nullptr);
      stream_.wait();
    }
    for (int attempt = 0; attempt < 4; ++attempt) {
      tracer_.collect(trace_, attempt > 0);
      join_records(canary);
      if (complete(canary.counts)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    clock_.bracket();
    return verdict(canary.counts);
  }

 private:
  bool with_kernels() const { return tracer_.level() >= TraceLevel::kernels; }

  void join_records(Canary& canary) {
    const Joined joined = join(trace_);
    canary.scatter_ns =
        scatter_of_launches(launch_times(trace_, joined, [](std::int64_t) { return true; }));
    canary.counts = join(trace_, clock_.uncertainty_ns() + canary.scatter_ns).counts;
  }

  bool complete(const JoinCounts& counts) const {
    return counts.launches >= kCanaryLaunches &&
           (!with_kernels() || counts.joined >= kCanaryLaunches);
  }

  std::optional<TraceUnavailable> verdict(const JoinCounts& counts) const {
    const auto problem = [&](TraceState state, const std::string& why) {
      return TraceUnavailable(state, fmt::format("of {} empty launches: {}", kCanaryLaunches, why));
    };
    if (counts.impossible() > 0) {
      return problem(counts.dropped > 0 ? TraceState::dropped : TraceState::bad_timestamps,
                     counts.describe_impossible());
    }
    if (clock_.step_ns() != 0) return problem(TraceState::clock_step, "the trace's clock jumped");
    if (counts.launches + counts.kernels == 0)
      return problem(TraceState::no_records, "none was recorded");
    if (counts.launches == kCanaryLaunches &&
        (!with_kernels() ||
         (counts.kernels == kCanaryLaunches && counts.joined == kCanaryLaunches))) {
      return std::nullopt;
    }
    return problem(TraceState::unjoined,
                   fmt::format("{} calls and {} kernels were recorded, {} joined",
                               counts.launches,
                               counts.kernels,
                               counts.joined));
  }

  Tracer& tracer_;
  Stream& stream_;
  const Kernel& kernel_;
  TraceClock clock_;
  activity::Trace trace_;
};

}  // namespace

void check_with_canary(Tracer& tracer, Device& device, Canary& canary) {
  constexpr int kMostTries = 3;
  constexpr auto kBusy = std::chrono::milliseconds(50);
  const std::unique_ptr<Stream> stream = device.create_stream();
  const std::unique_ptr<Kernel> kernel = device.load(kernels::null_kernel);
  for (;;) {
    const auto problem = CanaryTry(tracer, *stream, *kernel).run(canary);
    ++canary.tries;
    if (!problem) return;
    if (canary.tries == 1) canary.burst = problem->what();
    if (canary.tries == kMostTries) throw *problem;
    for (const auto until = std::chrono::steady_clock::now() + kBusy;
         std::chrono::steady_clock::now() < until;) {
      stream->launch(*kernel, {1, 1}, nullptr);
      stream->wait();
    }
  }
}

}  // namespace launchgap
