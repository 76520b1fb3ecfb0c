#include "harness/import/launch_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "harness/import/call_names.h"
#include "harness/import/cover.h"
#include "harness/import/steps.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Purpose;

/// What else went on, for each thread without its own part in it.
class Beside {
 public:
  Beside(const Process& process, std::uint64_t gpu) {
    for (const activity::Transfer& transfer : process.trace.transfers) {
      if (process.streams[transfer.stream].gpu == gpu)
        transfers.add(transfer.begin_ns, transfer.end_ns);
    }
    transfers.build();
    std::vector<bool> launching(process.threads.size(), false);
    for (const Call& call : process.trace.calls) {
      if (is_launch(call.purpose)) launching[call.thread] = true;
      if (call.purpose == Purpose::allocate || call.purpose == Purpose::release)
        allocations.add(call.begin_ns, call.end_ns);
    }
    allocations.build();
    if (process.threads.size() < 2) return;
    waits_.resize(process.threads.size());
    calls_.resize(process.threads.size());
    // A process launches from few threads; of each, what the others do.
    for (std::uint32_t thread = 0; thread < process.threads.size(); ++thread) {
      if (!launching[thread]) continue;
      for (const Call& call : process.trace.calls) {
        if (call.thread == thread) continue;
        calls_[thread].add(call.begin_ns, call.end_ns);
        if (call.purpose == Purpose::wait) waits_[thread].add(call.begin_ns, call.end_ns);
      }
      calls_[thread].build();
      waits_[thread].build();
    }
  }

  Cover transfers, allocations;
  const Cover* waits_of_others(std::uint32_t thread) const { return of(waits_, thread); }
  const Cover* calls_of_others(std::uint32_t thread) const { return of(calls_, thread); }

 private:
  static const Cover* of(const std::vector<Cover>& covers, std::uint32_t thread) {
    return thread < covers.size() ? &covers[thread] : nullptr;
  }
  std::vector<Cover> waits_, calls_;
};

double covered(const Cover* cover, std::int64_t from, std::int64_t to) {
  return cover ? static_cast<double>(cover->within(from, to)) : Block::kMissing;
}

/// Each sample's value for each metric that is known of it.
class Values {
 public:
  /// There may be so many samples. Room that is not used costs no memory.
  explicit Values(std::size_t most = 0) : most_(most) {}
  void begin_sample() { ++samples_; }
  void set(std::string_view metric, double value) {
    if (std::isnan(value)) return;
    for (Column& column : columns_) {
      if (column.metric == metric) {
        column.values.resize(samples_ - 1, Block::kMissing);
        column.values.push_back(value);
        return;
      }
    }
    std::vector<double>& values = columns_.emplace_back(Column{metric, {}}).values;
    values.reserve(most_);
    values.resize(samples_ - 1, Block::kMissing);
    values.push_back(value);
  }
  std::vector<Column> take() {
    for (Column& column : columns_) column.values.resize(samples_, Block::kMissing);
    return std::move(columns_);
  }

 private:
  std::size_t most_;
  std::size_t samples_ = 0;
  std::vector<Column> columns_;
};

constexpr std::pair<std::string_view, IdleCause> kIdleMetrics[] = {
    {"idle_queued_ns", IdleCause::queued},
    {"idle_launch_ns", IdleCause::launch},
    {"idle_waiting_ns", IdleCause::waiting},
    {"idle_allocating_ns", IdleCause::allocating},
    {"idle_calling_ns", IdleCause::calling},
    {"idle_program_ns", IdleCause::program},
    {"idle_unknown_ns", IdleCause::unknown},
};

/// When nothing of a process but collective kernels ran on a GPU.
class CollectivesAlone {
 public:
  CollectivesAlone(const Process& process, std::uint64_t gpu) {
    const activity::Trace& trace = process.trace;
    const auto is_here = [&](const auto& record) {
      return has_times(record) && process.streams[record.stream].gpu == gpu;
    };
    std::vector<bool> collective;
    for (const std::string& name : trace.names()) collective.push_back(is_collective(name));
    any_ = std::ranges::any_of(trace.kernels, [&](const activity::KernelRun& kernel) {
      return collective[kernel.name] && is_here(kernel);
    });
    if (!any_) return;
    const auto add = [&](const auto& records, auto&& counts) {
      for (const auto& record : records) {
        if (!is_here(record)) continue;
        all_.add(record.begin_ns, record.end_ns);
        if (counts(record)) others_.add(record.begin_ns, record.end_ns);
      }
    };
    const auto always = [](const auto&) { return true; };
    add(trace.kernels, [&](const activity::KernelRun& kernel) { return !collective[kernel.name]; });
    add(trace.transfers, always);
    add(trace.graphs, always);
    all_.build();
    others_.build();
  }

  /// Missing where the process has none at all.
  double within(std::int64_t from_ns, std::int64_t to_ns) const {
    if (!any_) return Block::kMissing;
    return static_cast<double>(all_.within(from_ns, to_ns) - others_.within(from_ns, to_ns));
  }

 private:
  bool any_ = false;
  Cover all_, others_;
};

/// How many launches began in a stretch of time, and how long their calls took.
class LaunchTimes {
 public:
  explicit LaunchTimes(const Process& process) {
    for (const Call& call : process.trace.calls) {
      if (is_launch(call.purpose) && has_times(call))
        launches_.emplace_back(call.begin_ns, call.end_ns - call.begin_ns);
    }
    std::ranges::sort(launches_);
    std::int64_t sum = 0;
    for (auto& [begin, duration] : launches_) {
      end_ns_ = std::max(end_ns_, begin + duration);
      duration = sum += duration;
    }
  }
  std::int64_t begin_ns() const { return launches_.empty() ? 0 : launches_.front().first; }
  std::int64_t end_ns() const { return end_ns_; }

  std::pair<std::ptrdiff_t, std::int64_t> within(std::int64_t from, std::int64_t to) const {
    const auto first = std::ranges::lower_bound(launches_, from, {}, &Launch::first);
    const auto last = std::ranges::lower_bound(launches_, to, {}, &Launch::first);
    const auto until = [&](auto place) {
      return place == launches_.begin() ? 0 : std::prev(place)->second;
    };
    return {last - first, until(last) - until(first)};
  }

 private:
  using Launch = std::pair<std::int64_t, std::int64_t>;  // begin; time in all calls up to this one
  std::vector<Launch> launches_;
  std::int64_t end_ns_ = 0;
};

const std::vector<double>* values_of(const RecordedCase& launches, std::string_view metric) {
  const auto found = std::ranges::find(launches.columns, metric, &Column::metric);
  return found == launches.columns.end() ? nullptr : &found->values;
}

double value_or_zero(const std::vector<double>* values, std::size_t i) {
  return values && std::isfinite((*values)[i]) ? (*values)[i] : 0;
}

}  // namespace

std::vector<RecordedCase> launch_cases(const Process& process,
                                       const RecordedLaunches& launches,
                                       std::uint64_t gpu,
                                       bool and_unknown,
                                       bool clocks_agree) {
  const Beside beside(process, gpu);
  std::map<std::pair<bool, StreamState>, std::pair<RecordedCase, Values>> cases;
  std::map<std::uint32_t, std::int64_t> last_end;  // of each thread's launches, on whichever GPU
  for (const RecordedLaunch& launch : launches.launches) {
    const Call& call = process.trace.calls[launch.call];
    const auto [before, first] = last_end.try_emplace(call.thread, call.end_ns);
    const std::int64_t since_last = call.begin_ns - std::exchange(before->second, call.end_ns);
    if (launch.stream ? process.streams[*launch.stream].gpu != gpu : !and_unknown) continue;
    // What a stream did at a time of the host needs both clocks.
    const StreamState state = clocks_agree ? launch.state : StreamState::unknown;
    const auto [place, added] = cases.try_emplace(
        {launch.is_graph, state}, RecordedCase(), Values(launches.launches.size()));
    auto& [own, values] = place->second;
    if (added) own.begin_ns.reserve(launches.launches.size());
    own.begin_ns.push_back(call.begin_ns);
    own.end_ns = call.end_ns;
    values.begin_sample();
    const auto time = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds); };
    values.set("api_record_ns", time(call.end_ns - call.begin_ns));
    if (!first) values.set("since_last_ns", time(since_last));
    if (!launch.is_graph)
      values.set("beside_calls_ns",
                 covered(beside.calls_of_others(call.thread), call.begin_ns, call.end_ns));
    if (launch.state == StreamState::unknown) continue;
    if (launch.is_graph) {
      values.set("graph_ns", time(launch.end_ns - launch.begin_ns));
      if (launch.kernels > 0) values.set("kernels", launch.kernels);
    } else {
      values.set("kernel_ns", time(launch.kernel_ns));
    }
    if (!clocks_agree) continue;
    values.set("launch_ns", time(launch.begin_ns - call.begin_ns));
    if (launch.begin_ns >= call.end_ns) values.set("queue_ns", time(launch.begin_ns - call.end_ns));
    if (launch.is_graph) continue;
    if (!process.trace.overheads.empty()) values.set("overhead_ns", time(launch.overhead_ns));
    if (!beside.transfers.empty())
      values.set("overlap_transfers_ns",
                 covered(&beside.transfers, call.begin_ns, launch.begin_ns));
    if (!beside.allocations.empty())
      values.set("beside_allocations_ns",
                 covered(&beside.allocations, call.begin_ns, launch.begin_ns));
    values.set("beside_waits_ns",
               covered(beside.waits_of_others(call.thread), call.begin_ns, launch.begin_ns));
  }
  std::vector<RecordedCase> result;
  for (auto& [key, entry] : cases) {
    const auto& [is_graph, state] = key;
    entry.first.name =
        fmt::format("recorded/{}/stream:{}", is_graph ? "graph" : "launch", name_of(state));
    entry.first.columns = entry.second.take();
    result.push_back(std::move(entry.first));
  }
  return result;
}

std::vector<RecordedCase> step_cases(const Process& process,
                                     std::uint64_t gpu,
                                     const GpuGaps& gaps,
                                     std::string_view step_name) {
  const LaunchTimes launches(process);
  const CollectivesAlone collectives(process, gpu);
  RecordedCase steps, job;
  steps.name = "recorded/step";
  job.name = "recorded/job";
  Values of_steps, of_job;
  const auto add = [&](std::int64_t begin, std::int64_t end, RecordedCase& own, Values& values) {
    own.begin_ns.push_back(begin);
    own.end_ns = end;
    values.begin_sample();
    values.set("step_ns", static_cast<double>(end - begin));
    if (!process.trace.calls.empty()) {
      const auto [count, in_calls] = launches.within(begin, end);
      values.set("launches", static_cast<double>(count));
      values.set("launch_calls_ns", static_cast<double>(in_calls));
    }
    values.set("collectives_ns", collectives.within(begin, end));
    const Idleness idle = gaps.within(begin, end);
    if (idle.span_ns == 0) return;
    values.set("gpu_idle_share",
               static_cast<double>(idle.idle()) / static_cast<double>(idle.span_ns));
    for (const auto& [metric, cause] : kIdleMetrics)
      values.set(metric, static_cast<double>(idle.of(cause)));
  };
  for (const Step& step : steps_of(process, step_name))
    add(step.begin_ns, step.end_ns, steps, of_steps);
  const std::int64_t begin = gaps.empty() ? launches.begin_ns() : gaps.begin_ns();
  const std::int64_t end = gaps.empty() ? launches.end_ns() : gaps.end_ns();
  if (end > begin) add(begin, end, job, of_job);
  steps.columns = of_steps.take();
  job.columns = of_job.take();
  std::vector<RecordedCase> result;
  for (RecordedCase* one : {&steps, &job}) {
    if (!one->begin_ns.empty()) result.push_back(std::move(*one));
  }
  return result;
}

std::vector<SlowSampleRecord> slow_launches(const RecordedCase& launches) {
  const std::vector<double>* const calls = values_of(launches, "api_record_ns");
  const std::vector<double>* const to_kernel = values_of(launches, "launch_ns");
  const bool is_idle = launches.name.ends_with("stream:idle");
  const bool by_kernel = is_idle && to_kernel;
  const std::vector<double>* const values = by_kernel ? to_kernel : calls;
  if (!values) return {};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (std::isfinite((*values)[i])) order.push_back(i);
  }
  const std::size_t n = std::min(order.size(), SlowSampleRecord::kPerCase);
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(n), [&](std::size_t a, std::size_t b) {
        return (*values)[a] != (*values)[b] ? (*values)[a] > (*values)[b] : a < b;
      });
  std::vector<SlowSampleRecord> slow;
  for (const std::size_t i : std::span(order).first(n)) {
    std::map<std::string, double> all;
    for (const Column& column : launches.columns) {
      if (std::isfinite(column.values[i])) all.emplace(column.metric, column.values[i]);
    }
    // Until the kernel begins, or the call ends.
    const double lasts =
        std::max(value_or_zero(calls, i), by_kernel ? value_or_zero(to_kernel, i) : 0);
    slow.push_back({.case_name = launches.name,
                    .block = static_cast<int>(i / kSamplesPerBlock),
                    .sample = i,
                    .metric = by_kernel ? "launch_ns" : "api_record_ns",
                    .values = std::move(all),
                    .begin_ns = launches.begin_ns[i],
                    .end_ns = launches.begin_ns[i] + static_cast<std::int64_t>(lasts)});
  }
  return slow;
}

void count_waiting(std::vector<SlowSampleRecord>& slow,
                   const Process& process,
                   const RecordedLaunches& launches,
                   std::uint64_t gpu) {
  const auto count = [&](std::int64_t asked_ns, std::int64_t begin_ns, std::uint64_t n) {
    for (SlowSampleRecord& own : slow) {
      if (asked_ns < own.begin_ns && begin_ns > own.begin_ns) *own.waiting += n;
    }
  };
  const auto is_here = [&](std::uint32_t stream) { return process.streams[stream].gpu == gpu; };
  for (SlowSampleRecord& own : slow) own.waiting = 0;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.stream && is_here(*launch.stream))
      count(
          process.trace.calls[launch.call].begin_ns, launch.begin_ns, std::max(launch.kernels, 1u));
  }
  std::unordered_map<std::uint32_t, std::int64_t> transfers;
  for (const activity::Transfer& transfer : process.trace.transfers) {
    if (has_times(transfer) && is_here(transfer.stream))
      transfers.emplace(transfer.correlation, transfer.begin_ns);
  }
  if (transfers.empty()) return;
  for (const activity::Call& call : process.trace.calls) {
    const auto found = is_launch(call.purpose) ? transfers.end() : transfers.find(call.correlation);
    if (found == transfers.end() || !has_times(call)) continue;
    count(call.begin_ns, found->second, 1);
    transfers.erase(found);  // a call may be in two rows
  }
}

}  // namespace launchgap::recording
