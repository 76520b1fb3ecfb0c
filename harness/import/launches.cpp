#include "harness/import/launches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "harness/import/clock_fit.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::KernelRun;
using activity::Trace;

/// What a stream did, by begin.
struct StreamWork {
  struct Item {
    std::int64_t begin_ns;
    std::int64_t end_ns;  // once sorted, the latest of all items up to this one
  };
  std::vector<Item> items;

  void sort() {
    std::ranges::sort(items, {}, &Item::begin_ns);
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    for (Item& item : items) latest = item.end_ns = std::max(latest, item.end_ns);
  }
  /// When everything that began before `time_ns` had ended; nothing if there was nothing.
  std::optional<std::int64_t> ended_before(std::int64_t time_ns) const {
    const auto next = std::ranges::lower_bound(items, time_ns, {}, &Item::begin_ns);
    if (next == items.begin()) return std::nullopt;
    return std::prev(next)->end_ns;
  }
};

std::vector<StreamWork> work_of_streams(const Process& process) {
  std::vector<StreamWork> streams(process.streams.size());
  if (streams.size() == 1) streams[0].items.reserve(process.trace.kernels.size());
  for_each_work(process.trace, [&](const auto& record) {
    if (has_times(record) && record.stream < streams.size())
      streams[record.stream].items.push_back({record.begin_ns, record.end_ns});
  });
  for (StreamWork& stream : streams) stream.sort();
  return streams;
}

/// What the device did for each launch: its kernels, or the graph as a whole.
void add_work(const Trace& trace,
              const Joined& joined,
              const Launch& launch,
              RecordedLaunch& result) {
  for (const std::uint32_t index : joined.kernels_of(launch)) {
    const KernelRun& kernel = trace.kernels[index];
    if (result.kernels == 0) {
      result.kernel = index;
      result.stream = kernel.stream;
      result.begin_ns = kernel.begin_ns;
      result.end_ns = kernel.end_ns;
    }
    ++result.kernels;
    result.end_ns = std::max(result.end_ns, kernel.end_ns);
    result.kernel_ns += kernel.end_ns - kernel.begin_ns;
  }
}

}  // namespace

std::string_view name_of(StreamState state) {
  switch (state) {
    case StreamState::idle:
      return "idle";
    case StreamState::busy:
      return "busy";
    case StreamState::unknown:
      break;
  }
  return "unknown";
}

RecordedLaunches launches_of(const Process& process, std::int64_t clock_error_ns) {
  const Trace& trace = process.trace;
  const Joined joined = join(trace, clock_error_ns);
  const std::vector<StreamWork> streams = work_of_streams(process);
  std::unordered_map<std::uint32_t, const activity::Graph*> whole_graphs;
  for (const activity::Graph& graph : trace.graphs) whole_graphs.emplace(graph.correlation, &graph);

  RecordedLaunches result;
  result.counts = joined.counts;
  result.launches.reserve(joined.launches.size());
  for (const Launch& launch : joined.launches) {
    const Call& call = trace.calls[launch.call];
    if (!has_times(call)) continue;  // it is counted, and there is nothing to tell of it
    RecordedLaunch own;
    own.call = launch.call;
    own.overhead_ns = launch.overhead_ns;
    own.is_graph = call.purpose == activity::Purpose::launch_graph;
    add_work(trace, joined, launch, own);
    if (own.kernels == 0 && launch.is_graph) {
      const activity::Graph& graph = *whole_graphs.at(call.correlation);
      own.is_graph = true;
      own.stream = graph.stream;
      own.begin_ns = graph.begin_ns;
      own.end_ns = graph.end_ns;
    }
    if (own.stream && !launch.impossible) {
      const auto ended = streams[*own.stream].ended_before(own.begin_ns);
      own.state = !ended || *ended <= call.begin_ns ? StreamState::idle : StreamState::busy;
    }
    result.launches.push_back(own);
  }
  return result;
}

std::int64_t tick_ns(const Process& process) {
  std::int64_t first = 0, step = 0;
  std::size_t times = 0;
  const auto look = [&](const auto& records) {
    for (const auto& record : records) {
      for (const std::int64_t time : {record.begin_ns, record.end_ns}) {
        if (time <= 0) continue;
        if (times++ == 0) first = time;
        step = std::gcd(step, time - first);
      }
    }
  };
  look(process.trace.calls);
  look(process.trace.kernels);
  constexpr std::size_t kFewest = 10;
  return times < kFewest || step == 0 ? 1 : step;
}

std::size_t launches_on_several_gpus(const Process& process) {
  if (has_one_gpu(process)) return 0;
  std::map<std::uint32_t, std::uint64_t> first;
  std::set<std::uint32_t> several;
  for (const activity::KernelRun& kernel : process.trace.kernels) {
    const std::uint64_t gpu = process.streams[kernel.stream].gpu;
    if (kernel.correlation != 0 && first.try_emplace(kernel.correlation, gpu).first->second != gpu)
      several.insert(kernel.correlation);
  }
  return several.size();
}

}  // namespace launchgap::recording
