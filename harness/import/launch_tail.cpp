#include "harness/import/launch_tail.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "harness/import/call_names.h"
#include "harness/import/cover.h"
#include "harness/import/own_events.h"
#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::OverheadKind;

/// A launch whose call is told of.
struct Told {
  const RecordedLaunch* launch;
  const Call* call;
  std::int64_t ns;
  /// What it launches: a kernel's name; of graphs, that of the first kernel. Nothing where the
  /// kernel is lost.
  std::optional<std::pair<bool, std::uint32_t>> kernel;
  bool is_long = false, is_first = false, finds_full_queue = false;
};

/// How much of each stream's work was launched and had not begun.
class Queues {
 public:
  explicit Queues(const Process& process) : streams_(process.streams.size()) {
    const activity::Trace& trace = process.trace;
    std::unordered_map<std::uint32_t, std::int64_t> called;
    for (const Call& call : trace.calls) {
      if (!has_times(call) || call.correlation == 0) continue;
      const auto [entry, added] = called.try_emplace(call.correlation, call.begin_ns);
      if (!added) entry->second = std::min(entry->second, call.begin_ns);
    }
    // All kernels of a graph that ran on one stream count, as the room that they take is not known.
    for_each_work(trace, [&](const auto& record) {
      if (!has_times(record)) return;
      Queue& queue = streams_[record.stream];
      const auto call = called.find(record.correlation);
      // What nobody launched in the recording was launched before it.
      queue.called.push_back(call == called.end() ? 0 : call->second);
      queue.begun.push_back(record.begin_ns);
    });
    for (Queue& queue : streams_) {
      std::ranges::sort(queue.called);
      std::ranges::sort(queue.begun);
    }
  }

  std::size_t waiting(std::uint32_t stream, std::int64_t at_ns) const {
    const Queue& queue = streams_[stream];
    const auto called = std::ranges::lower_bound(queue.called, at_ns) - queue.called.begin();
    const auto begun = std::ranges::upper_bound(queue.begun, at_ns) - queue.begun.begin();
    return called > begun ? static_cast<std::size_t>(called - begun) : 0;
  }

 private:
  struct Queue {
    std::vector<std::int64_t> called, begun;
  };
  std::vector<Queue> streams_;
};

bool loads_code(OverheadKind kind) {
  return kind == OverheadKind::compiler || kind == OverheadKind::module_loading ||
         kind == OverheadKind::lazy_function_loading;
}

/// What may go on beside a call for half of its time, unless it does so beside usual ones too.
class Coincidence {
 public:
  void add(std::int64_t begin_ns, std::int64_t end_ns) { cover_.add(begin_ns, end_ns); }
  void build(const std::vector<Told>& launches, auto&& is_asked) {
    cover_.build();
    if (cover_.empty()) return;
    std::size_t usual = 0, beside = 0;
    for (const Told& told : launches) {
      if (told.is_long || !is_asked(told)) continue;
      ++usual;
      if (covers(told)) ++beside;
    }
    tells_ = static_cast<double>(beside) <= kMostUsualBeside * static_cast<double>(usual);
  }
  bool explains(const Told& told) const { return tells_ && covers(told); }

 private:
  bool covers(const Told& told) const {
    return 2 * cover_.within(told.call->begin_ns, told.call->end_ns) >= told.ns && told.ns > 0;
  }
  Cover cover_;
  bool tells_ = false;
};

/// Calls of other threads, and of the recorder, that launches may have waited for.
class Neighbours {
 public:
  Neighbours(const Process& process, const std::vector<Told>& launches) : process_(process) {
    for (const activity::Overhead& overhead : process.trace.overheads) {
      if (!has_times(overhead)) continue;
      Coincidence& own = loads_code(overhead.kind)                            ? loading
                         : overhead.kind == OverheadKind::command_buffer_full ? full
                                                                              : recorder;
      own.add(overhead.begin_ns, overhead.end_ns);
    }
    const auto all = [](const Told&) { return true; };
    for (Coincidence* own : {&loading, &full, &recorder}) own->build(launches, all);
    for (const RecordedPause& pause : process.pauses)
      paused_[pause.thread].add(pause.begin_ns, pause.end_ns);
    for (auto& [thread, cover] : paused_) cover.build();
    if (process.threads.size() < 2) return;
    std::map<std::uint32_t, std::vector<const Told*>> of_threads;
    for (const Told& told : launches) {
      if (told.is_long) of_threads[told.call->thread].push_back(&told);
    }
    // One thread after the other: what all others do takes as much memory as the calls.
    for (const auto& [thread, own] : of_threads) {
      Coincidence others;
      for (const Call& call : process.trace.calls) {
        if (call.thread != thread && has_times(call)) others.add(call.begin_ns, call.end_ns);
      }
      others.build(launches, [launching = thread](const Told& told) {
        return told.call->thread == launching;
      });
      for (const Told* const told : own) {
        if (others.explains(*told)) overlapped_.insert(told);
      }
    }
  }

  bool overlaps(const Told& told) const { return overlapped_.contains(&told); }
  bool paused(const Told& told) const {
    const auto found = paused_.find(told.call->thread);
    return found != paused_.end() &&
           2 * found->second.within(told.call->begin_ns, told.call->end_ns) >= told.ns;
  }
  /// The call of another thread that most of a launch's time is of.
  std::uint32_t longest_beside(const Told& told) const {
    std::int64_t most = 0;
    std::uint32_t name = 0;
    for (const Call& call : process_.trace.calls) {
      if (call.thread == told.call->thread || !has_times(call)) continue;
      const std::int64_t shared =
          std::min(call.end_ns, told.call->end_ns) - std::max(call.begin_ns, told.call->begin_ns);
      if (shared > most) {
        most = shared;
        name = call.id;
      }
    }
    return name;
  }

  Coincidence loading, full, recorder;

 private:
  const Process& process_;
  std::unordered_set<const Told*> overlapped_;  // by calls of other threads
  std::map<std::uint32_t, Cover> paused_;
};

std::vector<Told> told_launches(const Process& process,
                                const RecordedLaunches& launches,
                                std::uint64_t gpu,
                                bool and_unknown) {
  std::vector<Told> all;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.stream ? process.streams[*launch.stream].gpu != gpu : !and_unknown) continue;
    const Call& call = process.trace.calls[launch.call];
    Told& told = all.emplace_back(Told{&launch, &call, call.end_ns - call.begin_ns, {}});
    if (launch.kernels > 0)
      told.kernel = {launch.is_graph, process.trace.kernels[launch.kernel].name};
  }
  return all;
}

/// Beyond which a call is a giant. The longest is left out, as of two launches the median would be
/// half of it.
double least_giant_ns(std::vector<std::int64_t> times) {
  if (times.size() < 2) return static_cast<double>(kLongAlone);
  times.erase(std::ranges::max_element(times));
  return kGiant * *stats::quantile_in_place(times, 0.5);
}

/// Where most launches wait for room, waiting is no usual launch.
void mark_those_that_wait(std::vector<Told>& launches) {
  std::vector<std::int64_t> with_room;
  for (const Told& told : launches) {
    if (!told.finds_full_queue) with_room.push_back(told.ns);
  }
  if (with_room.size() < kFewestWithRoom) return;
  const double least = kWaits * *stats::quantile_in_place(with_room, 0.5);
  for (Told& told : launches) {
    if (told.finds_full_queue && static_cast<double>(told.ns) > least) told.is_long = true;
  }
}

/// The time in which one of these calls or more goes on.
class Covered {
 public:
  void add(const Call& call) {
    cover_.add(call.begin_ns, call.end_ns);
    end_ns_ = std::max(end_ns_, call.end_ns);
  }
  std::int64_t all() {
    cover_.build();
    return cover_.within(0, end_ns_);
  }

 private:
  Cover cover_;
  std::int64_t end_ns_ = 0;
};

/// By kernel, how long its calls take but the first, ascending.
using CallTimes = std::map<std::pair<bool, std::uint32_t>, std::vector<std::int64_t>>;

CallTimes times_of_kernels(std::vector<Told>& launches) {
  CallTimes calls;
  for (Told& told : launches) {
    if (!told.kernel) continue;
    const auto [own, first] = calls.try_emplace(*told.kernel);
    told.is_first = first;
    if (!first) own->second.push_back(told.ns);
  }
  launches.front().is_first = true;
  for (auto& [kernel, own] : calls) std::ranges::sort(own);
  return calls;
}

/// The median of the kernel's other launches, the first left out; absent below five of them.
std::optional<double> median_of_others(const CallTimes& calls, const Told& told) {
  constexpr std::size_t kFewest = 5;
  const auto own = told.kernel ? calls.find(*told.kernel) : calls.end();
  if (own == calls.end()) return std::nullopt;
  const std::vector<std::int64_t>& times = own->second;
  const auto place = std::ranges::lower_bound(times, told.ns);
  // A first launch is not among them.
  const bool among_them = place != times.end() && *place == told.ns;
  const auto itself = static_cast<std::size_t>(place - times.begin());
  const std::size_t others = times.size() - (among_them ? 1 : 0);
  if (others < kFewest) return std::nullopt;
  const auto other = [&](std::size_t i) {
    return static_cast<double>(times[among_them && i >= itself ? i + 1 : i]);
  };
  return (other((others - 1) / 2) + other(others / 2)) / 2;
}

}  // namespace

std::optional<LaunchTail> launch_tail(const Process& process,
                                      const RecordedLaunches& launches,
                                      std::uint64_t gpu,
                                      bool and_unknown,
                                      bool clocks_agree,
                                      TailBegins begins) {
  constexpr std::size_t kLeastForTail = 100;
  constexpr double kSlower = 1.5;
  std::vector<Told> all = told_launches(process, launches, gpu, and_unknown);
  if (all.empty()) return std::nullopt;
  LaunchTail tail;
  std::vector<std::int64_t> times;
  Covered covered;
  for (const Told& told : all) {
    times.push_back(told.ns);
    covered.add(*told.call);
    tail.time_ns += told.ns;
  }
  tail.launches = all.size();
  tail.covered_ns = covered.all();
  const double giant = least_giant_ns(times);
  tail.p50_ns = *stats::quantile_in_place(times, 0.5);
  if (all.size() >= kLeastForTail) tail.p99_ns = *stats::quantile_in_place(times, 0.99);
  const Queues queues(process);
  for (Told& told : all) {
    const auto ns = static_cast<double>(told.ns);
    told.is_long = (tail.p99_ns > 0 && ns > tail.p99_ns) || ns > giant;
    told.finds_full_queue = clocks_agree && told.launch->stream &&
                            queues.waiting(*told.launch->stream, told.call->begin_ns) >= kFullQueue;
  }
  mark_those_that_wait(all);
  const CallTimes calls = times_of_kernels(all);
  if (begins == TailBegins::after_warm_up) {
    for (Told& told : all) told.is_first = false;
  }
  const Neighbours neighbours(process, all);
  const auto launches_slow_kernel = [&](const Told& told) {
    const std::optional<double> others = median_of_others(calls, told);
    return others && 2 * *others >= static_cast<double>(told.ns) &&
           *others >= kSlower * tail.p50_ns;
  };
  const auto cause_of = [&](const Told& told) {
    if (!told.is_long) return TailCause::usual;
    if (told.is_first || neighbours.loading.explains(told)) return TailCause::first_launch;
    if (told.finds_full_queue || neighbours.full.explains(told)) return TailCause::queue_full;
    if (neighbours.overlaps(told)) return TailCause::overlapping_call;
    if (neighbours.recorder.explains(told)) return TailCause::recorder;
    if (neighbours.paused(told)) return TailCause::host_pause;
    return launches_slow_kernel(told) ? TailCause::slow_kernel : TailCause::unexplained;
  };
  std::array<TailPart, kTailCauses.size()> parts;
  std::array<Covered, kTailCauses.size()> covered_by;
  std::vector<const Told*> overlapped;
  std::array<std::map<std::uint32_t, std::int64_t>, kTailCauses.size()> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Told& told = all[i];
    const TailCause cause = cause_of(told);
    TailPart& part = parts[static_cast<std::size_t>(cause)];
    ++part.launches;
    part.time_ns += told.ns;
    covered_by[static_cast<std::size_t>(cause)].add(*told.call);
    part.longest_ns = std::max(part.longest_ns, told.ns);
    part.last = i + 1;
    if (cause == TailCause::usual) continue;
    auto& own = names[static_cast<std::size_t>(cause)];
    if (cause == TailCause::overlapping_call) {
      overlapped.push_back(&told);
    } else if (told.kernel) {
      own[told.kernel->second] += told.ns;
    }
  }
  // To find the call beside one takes a look at all.
  const auto looked_at = std::min<std::size_t>(overlapped.size(), 32);
  std::ranges::partial_sort(overlapped,
                            overlapped.begin() + static_cast<std::ptrdiff_t>(looked_at),
                            std::ranges::greater(),
                            &Told::ns);
  for (const Told* const told : std::span(overlapped).first(looked_at))
    names[static_cast<std::size_t>(TailCause::overlapping_call)]
         [neighbours.longest_beside(*told)] += told->ns;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].launches == 0) continue;
    parts[i].cause = kTailCauses[i].name;
    parts[i].covered_ns = covered_by[i].all();
    const auto most =
        std::ranges::max_element(names[i], {}, [](const auto& own) { return own.second; });
    if (most != names[i].end()) {
      const std::string& name = process.trace.name(most->first);
      parts[i].what_ns = most->second;
      parts[i].what = i == static_cast<std::size_t>(TailCause::overlapping_call)
                          ? std::string(without_version(name))
                          : name;
    }
    tail.parts.push_back(std::move(parts[i]));
  }
  return tail;
}

std::optional<LaunchTail> own_launch_tail(const activity::Trace& trace,
                                          std::span<const OffItsCpu> off_its_cpu) {
  Process process = own_events(trace, 0, [](std::int64_t, std::int64_t) { return true; });
  for (const Call& call : process.trace.calls) {
    const auto next =
        std::ranges::upper_bound(off_its_cpu, call.begin_ns, {}, &OffItsCpu::begin_ns);
    if (next == off_its_cpu.begin()) continue;
    const OffItsCpu& off = *std::prev(next);
    if (call.begin_ns < off.end_ns)
      process.pauses.push_back({off.begin_ns, off.end_ns, call.thread});
  }
  return launch_tail(process, launches_of(process, 0), 0, true, true, TailBegins::after_warm_up);
}

}  // namespace launchgap::recording
