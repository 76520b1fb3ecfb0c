#include "harness/import/idleness.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Purpose;

IdleCause cause_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::wait:
      return IdleCause::waiting;
    case Purpose::allocate:
    case Purpose::release:
      return IdleCause::allocating;
    default:
      return IdleCause::calling;
  }
}

/// Something that ran on the GPU.
struct Work {
  std::int64_t begin_ns, end_ns;
  std::uint32_t correlation;
};

std::vector<Work> work_on(const Process& process, std::uint64_t gpu) {
  std::vector<Work> work;
  work.reserve(process.trace.kernels.size());
  for_each_work(process.trace, [&](const auto& record) {
    if (has_times(record) && process.streams[record.stream].gpu == gpu)
      work.push_back({record.begin_ns, record.end_ns, record.correlation});
  });
  std::ranges::sort(work, {}, &Work::begin_ns);
  return work;
}

bool has_kernels(const Process& process, std::uint64_t gpu) {
  const auto any_here = [&](const auto& records) {
    return std::ranges::any_of(
        records, [&](const auto& record) { return process.streams[record.stream].gpu == gpu; });
  };
  return any_here(process.trace.kernels) || any_here(process.trace.graphs);
}

/// What a process's threads did when, and which call started what.
class HostCalls {
 public:
  explicit HostCalls(const std::vector<Call>& calls) : calls_(calls) {
    for (std::uint32_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (!has_times(call)) continue;
      if (call.thread >= threads_.size()) threads_.resize(call.thread + 1);
      threads_[call.thread].push_back(i);
      if (call.correlation != 0) by_correlation_.emplace_back(call.correlation, i);
    }
    std::ranges::sort(by_correlation_);
    for (auto& own : threads_) keep_outermost(own);
  }

  const Call* with(std::uint32_t correlation) const {
    const auto found = std::ranges::lower_bound(
        by_correlation_, correlation, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    if (correlation == 0 || found == by_correlation_.end() || found->first != correlation)
      return nullptr;
    return &calls_[found->second];
  }

  /// The calls of a thread that go on between two times, by begin.
  template <class See>
  void between(std::uint32_t thread, std::int64_t from_ns, std::int64_t to_ns, See&& see) const {
    const auto& own = threads_[thread];
    auto next = std::ranges::lower_bound(
        own, from_ns, {}, [&](std::uint32_t index) { return calls_[index].begin_ns; });
    if (next != own.begin() && calls_[*std::prev(next)].end_ns > from_ns) --next;
    for (; next != own.end() && calls_[*next].begin_ns < to_ns; ++next) see(calls_[*next]);
  }

 private:
  /// In the order of their begins.
  void keep_outermost(std::vector<std::uint32_t>& own) const {
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      const Call &x = calls_[a], &y = calls_[b];
      return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
    };
    if (!std::ranges::is_sorted(own, before)) std::ranges::sort(own, before);
    std::int64_t covered_until = 0;
    std::erase_if(own, [&](std::uint32_t index) {
      const std::int64_t end = calls_[index].end_ns;
      const bool inner = end <= covered_until;
      covered_until = std::max(covered_until, end);
      return inner;
    });
  }

  const std::vector<Call>& calls_;
  std::vector<std::vector<std::uint32_t>> threads_;  // indices of calls
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_correlation_;
};

/// What waits and allocations cost, by the name of the call.
class StallSums {
 public:
  /// A gap begins, of this length.
  void begin_gap(std::int64_t length_ns) {
    left_ns_ = length_ns;
    in_gap_.clear();
  }
  /// The thread was in this call for so much of the gap.
  void add(const Call& call, std::int64_t idle_ns) {
    const IdleCause cause = cause_of(call.purpose);
    if (cause != IdleCause::waiting && cause != IdleCause::allocating) return;
    const std::int64_t lost = std::min(left_ns_, call.end_ns - call.begin_ns);
    left_ns_ -= lost;
    auto [entry, added] = in_gap_.try_emplace(std::pair(cause, call.id));
    entry->second.idle_ns += idle_ns;
    entry->second.lost_ns += lost;
  }
  void end_gap() {
    for (const auto& [key, own] : in_gap_) {
      Stall& sum = sums_[key];
      std::tie(sum.cause, sum.call) = key;
      ++sum.gaps;
      sum.idle_ns += own.idle_ns;
      sum.lost_ns += own.lost_ns;
      sum.longest_ns = std::max(sum.longest_ns, own.lost_ns);
    }
  }
  std::vector<Stall> take() const {
    std::vector<Stall> stalls;
    for (const auto& [key, sum] : sums_) stalls.push_back(sum);
    std::ranges::stable_sort(stalls, std::ranges::greater(), &Stall::lost_ns);
    return stalls;
  }

 private:
  using Key = std::pair<IdleCause, std::uint32_t>;
  std::int64_t left_ns_ = 0;  // of the gap, that no call before has to answer for
  std::map<Key, Stall> in_gap_, sums_;
};

/// A gap that the work of `call` ends; null where no record tells which call that was.
void add_gap(std::int64_t begin_ns,
             std::int64_t end_ns,
             const Call* call,
             const HostCalls& host,
             std::vector<IdlePart>& parts,
             StallSums& stalls,
             GpuGaps::LongWaits& waits) {
  // Work that begins later than that after its call would not have begun at once without a wait.
  constexpr std::int64_t kLongestStart = 100'000;
  const auto add = [&](std::int64_t from, std::int64_t to, IdleCause cause) {
    if (to > from) parts.push_back({from, to, cause});
  };
  if (!call) return add(begin_ns, end_ns, IdleCause::unknown);
  if (call->end_ns <= begin_ns) {
    if (call->purpose == Purpose::launch_graph) waits.queued_graph_ns += end_ns - begin_ns;
    return add(begin_ns, end_ns, IdleCause::queued);
  }
  const std::int64_t called = std::clamp(call->begin_ns, begin_ns, end_ns);
  std::int64_t at = begin_ns;
  stalls.begin_gap(called - begin_ns + std::min(end_ns - called, kLongestStart));
  host.between(call->thread, begin_ns, called, [&](const Call& other) {
    const std::int64_t from = std::max(other.begin_ns, at);
    const std::int64_t to = std::min(other.end_ns, called);
    add(at, from, IdleCause::program);
    add(from, to, cause_of(other.purpose));
    stalls.add(other, std::max<std::int64_t>(to - from, 0));
    if (cause_of(other.purpose) == IdleCause::calling)
      (is_launch(other.purpose) ? waits.launches : waits.calls).add(to - from, other.id);
    at = std::max(at, to);
  });
  stalls.end_gap();
  add(at, called, IdleCause::program);
  add(called, end_ns, IdleCause::launch);
  waits.starts.add(end_ns - called, call->id);
}

}  // namespace

std::int64_t Idleness::idle() const {
  return std::accumulate(idle_ns.begin(), idle_ns.end(), std::int64_t{0});
}

std::vector<UnknownTime> unknown_times(const Process& process, const RecordedLaunches& launches) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::map<std::uint32_t, std::int64_t> next;  // when the next known work of a thread begins
  std::vector<UnknownTime> found;
  for (auto launch = launches.launches.rbegin(); launch != launches.launches.rend(); ++launch) {
    const Call& call = process.trace.calls[launch->call];
    std::int64_t& begins = next.try_emplace(call.thread, kNever).first->second;
    if (launch->state != StreamState::unknown) {
      begins = launch->begin_ns;
    } else if (begins > call.begin_ns) {
      found.push_back({call.begin_ns, begins});
    }
  }
  std::ranges::sort(found, {}, &UnknownTime::begin_ns);
  std::vector<UnknownTime> united;
  for (const UnknownTime& one : found) {
    if (united.empty() || one.begin_ns > united.back().end_ns) {
      united.push_back(one);
    } else {
      united.back().end_ns = std::max(united.back().end_ns, one.end_ns);
    }
  }
  return united;
}

GpuGaps::GpuGaps(const Process& process,
                 std::uint64_t gpu,
                 bool clocks_agree,
                 const std::vector<UnknownTime>& unknown) {
  const std::vector<Work> work = work_on(process, gpu);
  if (work.empty() || (process.may_be_partial && !has_kernels(process, gpu))) return;
  const HostCalls host(process.trace.calls);
  StallSums stalls;
  begin_ns_ = work.front().begin_ns;
  end_ns_ = work.front().end_ns;
  for (const Work& item : work) {
    if (item.begin_ns > end_ns_) {
      const Call* const call = clocks_agree ? host.with(item.correlation) : nullptr;
      const std::size_t first_part = parts_.size();
      add_gap(end_ns_, item.begin_ns, call, host, parts_, stalls, waits_);
      see_pause(first_part);
    }
    end_ns_ = std::max(end_ns_, item.end_ns);
  }
  stalls_ = stalls.take();
  take_out(unknown);
}

void GpuGaps::take_out(const std::vector<UnknownTime>& unknown) {
  if (unknown.empty()) return;
  std::vector<IdlePart> parts;
  auto next = unknown.begin();
  for (IdlePart part : parts_) {
    while (next != unknown.end() && next->end_ns <= part.begin_ns) ++next;
    for (auto own = next; own != unknown.end() && own->begin_ns < part.end_ns; ++own) {
      const std::int64_t from = std::max(own->begin_ns, part.begin_ns);
      const std::int64_t to = std::min(own->end_ns, part.end_ns);
      if (from > part.begin_ns) parts.push_back({part.begin_ns, from, part.cause});
      parts.push_back({from, to, IdleCause::unknown});
      unknown_ns_ += to - from;
      part.begin_ns = to;
    }
    if (part.end_ns > part.begin_ns) parts.push_back(part);
  }
  parts_ = std::move(parts);
}

void GpuGaps::see_pause(std::size_t first_part) {
  std::int64_t own = 0;
  for (std::size_t i = first_part; i < parts_.size(); ++i) {
    if (parts_[i].cause == IdleCause::program) own += parts_[i].end_ns - parts_[i].begin_ns;
  }
  waits_.program.add(own);
}

Idleness GpuGaps::within(std::int64_t from_ns, std::int64_t to_ns) const {
  from_ns = std::max(from_ns, begin_ns_);
  to_ns = std::min(to_ns, end_ns_);
  Idleness result;
  if (to_ns <= from_ns) return result;
  result.span_ns = to_ns - from_ns;
  auto part = std::ranges::lower_bound(parts_, from_ns, {}, &IdlePart::end_ns);
  for (; part != parts_.end() && part->begin_ns < to_ns; ++part) {
    result.idle_ns[static_cast<std::size_t>(part->cause)] +=
        std::min(part->end_ns, to_ns) - std::max(part->begin_ns, from_ns);
  }
  return result;
}

std::int64_t GpuGaps::program_in(const Cover& times,
                                 std::int64_t from_ns,
                                 std::int64_t to_ns) const {
  std::int64_t sum = 0;
  auto part = std::ranges::lower_bound(parts_, from_ns, {}, &IdlePart::end_ns);
  for (; part != parts_.end() && part->begin_ns < to_ns; ++part) {
    if (part->cause == IdleCause::program)
      sum += times.within(std::max(part->begin_ns, from_ns), std::min(part->end_ns, to_ns));
  }
  return sum;
}

}  // namespace launchgap::recording
