#include "harness/import/job_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <unordered_map>

#include "harness/import/call_names.h"
#include "harness/import/event_kinds.h"
#include "harness/import/kernel_changes.h"
#include "harness/import/launch_tail.h"
#include "harness/import/steps.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// Nothing for one that no record tells.
std::vector<std::uint64_t> extent(const KernelSeries::Shape& shape) {
  std::vector<std::uint64_t> positive;
  if (shape == KernelSeries::Shape{}) return positive;
  for (const std::int32_t size : shape)
    positive.push_back(static_cast<std::uint64_t>(std::max(size, 0)));
  return positive;
}

/// What each kernel's launch call took, by the kernel; 0 where no call is known.
std::vector<std::int64_t> calls_of_kernels(const Process& process,
                                           const RecordedLaunches& launches) {
  std::vector<std::int64_t> calls(process.trace.kernels.size(), 0);
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.is_graph || launch.kernels == 0) continue;
    const activity::Call& call = process.trace.calls[launch.call];
    calls[launch.kernel] = call.end_ns - call.begin_ns;
  }
  return calls;
}

void add_times(const Process& process, const KernelSeries& series, CountedKernels& own) {
  std::vector<std::int64_t> times;
  times.reserve(series.runs.size());
  double mean = 0, squares = 0;  // of the distances from it (Welford, Technometrics 4 (1962) 419)
  for (const std::uint32_t run : series.runs) {
    const activity::KernelRun& kernel = process.trace.kernels[run];
    const std::int64_t ns = kernel.end_ns - kernel.begin_ns;
    times.push_back(ns);
    own.total_ns += static_cast<std::uint64_t>(ns);
    const double apart = static_cast<double>(ns) - mean;
    mean += apart / static_cast<double>(times.size());
    squares += apart * (static_cast<double>(ns) - mean);
  }
  own.count = times.size();
  const auto [shortest, longest] = std::ranges::minmax(times);
  own.shortest_ns = static_cast<std::uint64_t>(shortest);
  own.longest_ns = static_cast<std::uint64_t>(longest);
  own.p50_ns = stats::quantile_in_place(times, 0.5);
  // Of fewer than a hundred there is no 1 in 100.
  if (times.size() >= 100) own.p99_ns = stats::quantile_in_place(times, 0.99);
  if (times.size() > 1 && mean > 0)
    own.cv = std::sqrt(squares / static_cast<double>(times.size() - 1)) / mean;
}

void add_calls(const KernelSeries& series,
               const std::vector<std::int64_t>& calls,
               CountedKernels& own) {
  std::vector<std::int64_t> times;
  times.reserve(series.runs.size());
  for (const std::uint32_t run : series.runs) {
    if (calls[run] > 0) times.push_back(calls[run]);
  }
  if (times.empty()) return;
  own.first_call_ns = static_cast<double>(times.front());
  own.later_call_ns = stats::quantile_in_place(std::span(times).subspan(1), 0.5);
}

void add_changes(const std::vector<PlacedRun>& runs, std::int64_t tick_ns, CountedKernels& own) {
  if (runs.empty()) return;
  std::uint32_t last = 0;
  for (const PlacedRun& run : runs) last = std::max(last, run.repeat);
  own.repeats = last + 1;
  if (const auto found = change(runs)) {
    own.early_ns = found->early_ns;
    own.late_ns = found->late_ns;
    own.change_chance = found->chance;
    own.repeats = found->repeats;
    own.ramp = found->ramp;
  }
  if (const auto modes = two_modes(runs, tick_ns)) {
    own.slow_mode_share = modes->slow_share;
    own.fast_mode_ns = modes->fast_ns;
    own.modes_apart_ns = modes->apart_ns;
  }
}

/// From the first call or work to the end of the last. Where the clocks of host and GPU disagree,
/// the longer of both, each by its own clock: between them lies no time that passed.
std::optional<std::int64_t> extent_of(const Process& process,
                                      std::uint64_t gpu,
                                      bool clocks_agree) {
  EventSpan host, device;
  for (const activity::Call& call : process.trace.calls) {
    if (has_times(call)) host.add(call);
  }
  for_each_work(process.trace, [&](const auto& record) {
    if (process.streams[record.stream].gpu == gpu && has_times(record)) device.add(record);
  });
  std::int64_t length = std::max(host.length_ns(), device.length_ns());
  if (clocks_agree) {
    host.add(device.first_ns, device.last_ns);
    length = host.length_ns();
  }
  return length > 0 ? std::optional(length) : std::nullopt;
}

PausesRecord record_of(const Process& process, const Pauses& pauses) {
  PausesRecord record{pauses.count, pauses.total_ns, pauses.longest_ns, {}};
  if (pauses.call) record.call = without_version(process.trace.name(*pauses.call));
  return record;
}

/// What the calls that launched one kernel took, in order.
using Durations = std::vector<std::int64_t>;

/// That a launch which is like the next ones takes as long as the first did.
double chance_of_first(const Durations& own) {
  const std::size_t others = std::min(kLocal, own.size() - 1);
  const auto end = own.begin() + 1 + static_cast<std::ptrdiff_t>(others);
  const auto as_slow =
      std::count_if(own.begin() + 1, end, [&](std::int64_t ns) { return ns >= own.front(); });
  return static_cast<double>(1 + as_slow) / static_cast<double>(1 + others);
}

}  // namespace

JobFigures job_figures(const Process& process,
                       const RecordedLaunches& launches,
                       std::uint64_t gpu,
                       bool and_unknown,
                       std::int64_t tick_ns,
                       std::string_view step_name,
                       bool clocks_agree) {
  JobFigures figures;
  const std::vector<KernelSeries> series = kernels_on(process, gpu);
  const RepeatedWork work = repeated_work(process, series);
  const std::vector<std::int64_t> calls = calls_of_kernels(process, launches);
  for (std::size_t i = 0; i < series.size(); ++i) {
    CountedKernels& own = figures.kernels.emplace_back();
    own.name = process.trace.name(series[i].name);
    own.grid = extent(series[i].grid);
    own.block = extent(series[i].block);
    add_times(process, series[i], own);
    add_calls(series[i], calls, own);
    add_changes(work.runs[i], tick_ns, own);
  }
  const std::vector<Step> steps = steps_of(process, step_name);
  std::ranges::transform(steps, std::back_inserter(figures.record.steps), &Step::number);
  figures.record.repeats = work.repeats;
  figures.record.first_launches = first_launches(process, launches, gpu);
  figures.record.variation = step_variation(process, launches, gpu, steps, clocks_agree);
  figures.record.tail = launch_tail(process, launches, gpu, and_unknown, clocks_agree);
  figures.record.extent_ns = extent_of(process, gpu, clocks_agree);
  figures.record.all_launches = launches.launches.size();
  figures.record.unknown_launches = static_cast<std::uint64_t>(
      std::ranges::count(launches.launches, StreamState::unknown, &RecordedLaunch::state));
  figures.record.python_calls = process.python_calls;
  return figures;
}

void add_gaps(JobRecord& record, const Process& process, const GpuGaps& gaps) {
  for (const Stall& stall : gaps.stalls()) {
    record.stalls.push_back({stall.cause == IdleCause::waiting ? "wait" : "allocate",
                             std::string(without_version(process.trace.name(stall.call))),
                             stall.gaps,
                             stall.idle_ns,
                             stall.lost_ns,
                             stall.longest_ns});
  }
  record.pauses = record_of(process, gaps.pauses());
  record.long_calls = record_of(process, gaps.long_calls());
  record.long_launches = record_of(process, gaps.long_launches());
  record.late_starts = record_of(process, gaps.late_starts());
  record.unknown_ns = gaps.unknown_ns();
  record.queued_graph_ns = gaps.queued_graph_ns();
}

std::optional<FirstLaunches> first_launches(const Process& process,
                                            const RecordedLaunches& launches,
                                            std::uint64_t gpu) {
  const activity::Trace& trace = process.trace;
  std::unordered_map<std::uint32_t, Durations> by_kernel;
  std::size_t n = 0;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.is_graph || launch.kernels == 0 || process.streams[*launch.stream].gpu != gpu)
      continue;
    const activity::Call& call = trace.calls[launch.call];
    by_kernel[trace.kernels[launch.kernel].name].push_back(call.end_ns - call.begin_ns);
    ++n;
  }
  FirstLaunches found;
  Durations all, firsts, firsts_of_all, laters, nexts;
  all.reserve(n);
  double statistic = 0, extra = 0;
  for (auto& [name, own] : by_kernel) {
    firsts_of_all.push_back(own.front());
    all.insert(all.end(), own.begin(), own.end());
    if (own.size() > kLeastLater) {
      statistic -= 2 * std::log(chance_of_first(own));
      firsts.push_back(own.front());
      std::array<std::int64_t, kLeastLater> next;
      std::copy_n(own.begin() + 1, kLeastLater, next.begin());
      nexts.push_back(std::llround(*stats::quantile_in_place(next, 0.5)));
      const auto first = static_cast<double>(own.front());
      const double later = *stats::quantile_in_place(std::span(own).subspan(1), 0.5);
      laters.push_back(std::llround(later));
      extra += std::max(0.0, first - later);
    }
    Durations().swap(own);
  }
  if (firsts.empty()) return std::nullopt;
  found.kernels = firsts.size();
  found.chance = stats::chi_squared_beyond(2 * static_cast<double>(firsts.size()), statistic);
  found.first_p50_ns = *stats::quantile_in_place(firsts, 0.5);
  found.later_p50_ns = *stats::quantile_in_place(laters, 0.5);
  found.next_p50_ns = *stats::quantile_in_place(nexts, 0.5);
  found.extra_ns = std::llround(std::min(extra, 9e18));
  const double limit = *stats::quantile_in_place(all, 0.99);
  const auto is_slow = [limit](std::int64_t ns) { return static_cast<double>(ns) > limit; };
  found.slow = static_cast<std::uint64_t>(std::ranges::count_if(all, is_slow));
  found.slow_firsts = static_cast<std::uint64_t>(std::ranges::count_if(firsts_of_all, is_slow));
  return found;
}

}  // namespace launchgap::recording
