#include "harness/recording/launch_values.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "harness/recording/cover.h"

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

/// A launch's value for each metric that is known of it.
class Values {
 public:
  void begin_launch() { ++launches_; }
  void set(std::string_view metric, double value) {
    if (std::isnan(value)) return;
    for (Column& column : columns_) {
      if (column.metric == metric) {
        column.values.resize(launches_ - 1, Block::kMissing);
        column.values.push_back(value);
        return;
      }
    }
    columns_.push_back({metric, std::vector<double>(launches_ - 1, Block::kMissing)});
    columns_.back().values.push_back(value);
  }
  std::vector<Column> take() {
    for (Column& column : columns_) column.values.resize(launches_, Block::kMissing);
    return std::move(columns_);
  }

 private:
  std::size_t launches_ = 0;
  std::vector<Column> columns_;
};

}  // namespace

std::string LaunchCase::name() const {
  return fmt::format("recorded/{}/stream:{}", graph ? "graph" : "launch", name_of(state));
}

std::vector<LaunchCase> launch_cases(const Process& process,
                                     const RecordedLaunches& launches,
                                     std::uint64_t gpu,
                                     bool and_unknown,
                                     bool clocks_agree) {
  const Beside beside(process, gpu);
  std::map<std::pair<bool, StreamState>, std::pair<LaunchCase, Values>> cases;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.stream ? process.streams[*launch.stream].gpu != gpu : !and_unknown) continue;
    const Call& call = process.trace.calls[launch.call];
    // What a stream did at a time of the host needs both clocks.
    const StreamState state = clocks_agree ? launch.state : StreamState::unknown;
    auto& [own, values] = cases[{launch.is_graph, state}];
    own.graph = launch.is_graph;
    own.state = state;
    own.begin_ns.push_back(call.begin_ns);
    own.end_ns.push_back(call.end_ns);
    values.begin_launch();
    const auto time = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds); };
    values.set("api_record_ns", time(call.end_ns - call.begin_ns));
    if (launch.gap_ns) values.set("since_last_ns", time(*launch.gap_ns));
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
      values.set("beside_transfers_ns", covered(&beside.transfers, call.begin_ns, launch.begin_ns));
    if (!beside.allocations.empty())
      values.set("beside_allocations_ns",
                 covered(&beside.allocations, call.begin_ns, launch.begin_ns));
    values.set("beside_waits_ns",
               covered(beside.waits_of_others(call.thread), call.begin_ns, launch.begin_ns));
  }
  std::vector<LaunchCase> result;
  for (auto& [key, entry] : cases) {
    entry.first.columns = entry.second.take();
    result.push_back(std::move(entry.first));
  }
  return result;
}

}  // namespace launchgap::recording
