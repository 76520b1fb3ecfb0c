#include "harness/import/work_of_calls.h"

#include <algorithm>

#include "harness/core/errors.h"
#include "harness/trace/join.h"

namespace launchgap::recording {
namespace {

PatternAction action_of(const activity::Transfer& transfer) {
  return transfer.fill        ? PatternAction::fill
         : transfer.from_host ? PatternAction::copy_to_device
         : transfer.to_host   ? PatternAction::copy_to_host
                              : PatternAction::copy;
}

/// The outermost call of each correlation number; those of launches own what they launched.
std::unordered_map<std::uint32_t, std::uint32_t> calls_by_correlation(const Process& process,
                                                                      const Joined& joined) {
  const std::vector<activity::Call>& calls = process.trace.calls;
  std::unordered_map<std::uint32_t, std::uint32_t> found;
  for (const Launch& launch : joined.launches)
    found.emplace(calls[launch.call].correlation, launch.call);
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    if (!has_times(calls[i])) continue;
    const auto [own, added] = found.emplace(calls[i].correlation, i);
    const activity::Call& known = calls[own->second];
    if (!added && !activity::is_launch(known.purpose) && calls[i].begin_ns < known.begin_ns)
      own->second = i;
  }
  found.erase(0);
  return found;
}

}  // namespace

WorkOfCalls::WorkOfCalls(const Process& process, std::int64_t tick_ns) {
  const activity::Trace& trace = process.trace;
  const Joined joined = join(trace, tick_ns);
  const auto calls = calls_by_correlation(process, joined);
  const auto call_of = [&](std::uint32_t correlation) {
    const auto found = calls.find(correlation);
    return found == calls.end() ? std::optional<std::uint32_t>() : found->second;
  };
  std::vector<std::optional<std::uint32_t>> of_kernels(trace.kernels.size());
  for (const Launch& launch : joined.launches) {
    for (const std::uint32_t kernel : joined.kernels_of(launch)) of_kernels[kernel] = launch.call;
  }
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const activity::KernelRun& kernel = trace.kernels[i];
    add({kernel.begin_ns, kernel.end_ns, kernel.stream}, of_kernels[i], process);
  }
  for (const activity::Transfer& transfer : trace.transfers) {
    add({transfer.begin_ns, transfer.end_ns, transfer.stream, transfer.bytes, action_of(transfer)},
        call_of(transfer.correlation),
        process);
  }
  for (const activity::Graph& graph : trace.graphs) {
    const auto call = call_of(graph.correlation);
    if (!call || by_call_[*call].empty())
      add({graph.begin_ns, graph.end_ns, graph.stream}, call, process);
  }
  for (auto& [call, works] : by_call_) std::ranges::stable_sort(works, {}, &Work::begin_ns);
}

void WorkOfCalls::add(const Work& work, std::optional<std::uint32_t> call, const Process& process) {
  if (!has_times(work)) return;
  Work own = work;
  if (call && has_times(process.trace.calls[*call]))
    own.called_ns = process.trace.calls[*call].begin_ns;
  all_.push_back(own);
  if (call) by_call_[*call].push_back(own);
}

const std::vector<Work>& WorkOfCalls::of(std::uint32_t call) const {
  static const std::vector<Work> kNone;
  const auto found = by_call_.find(call);
  return found == by_call_.end() ? kNone : found->second;
}

WorkFromBefore::WorkFromBefore(const std::vector<Work>& all,
                               std::int64_t begin_ns,
                               std::int64_t end_ns) {
  std::map<std::uint32_t, std::int64_t> first_own;
  const auto is_own = [&](const Work& work) {
    return work.called_ns && *work.called_ns >= begin_ns && *work.called_ns < end_ns;
  };
  for (const Work& work : all) {
    if (!is_own(work)) continue;
    const auto [own, added] = first_own.emplace(work.stream, work.begin_ns);
    if (!added) own->second = std::min(own->second, work.begin_ns);
  }
  for (const Work& work : all) {
    if (is_own(work) || work.end_ns <= begin_ns) continue;
    const auto first = first_own.find(work.stream);
    const bool leads = first != first_own.end() && work.begin_ns < first->second;
    const bool before =
        work.called_ns ? *work.called_ns < begin_ns : work.begin_ns < begin_ns || leads;
    if (before) {
      Stream& stream = streams_[work.stream];
      stream.cover.add(std::max(work.begin_ns, begin_ns), work.end_ns);
      stream.last_ns = std::max(stream.last_ns, work.end_ns);
      ends_.emplace_back(work.end_ns, work.stream);
    } else if (!work.called_ns && work.begin_ns < end_ns) {
      orphans_ns_ += work.end_ns - work.begin_ns;
    }
  }
  for (auto& [number, stream] : streams_) stream.cover.build();
}

std::uint64_t busiest_gpu(const Process& process, std::int64_t begin_ns, std::int64_t end_ns) {
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> counts;
  for (const activity::KernelRun& kernel : process.trace.kernels) {
    auto& [within, all] = counts[process.streams[kernel.stream].gpu];
    ++all;
    if (kernel.begin_ns >= begin_ns && kernel.begin_ns < end_ns) ++within;
  }
  if (counts.empty()) throw Error("it has no kernels, so there is nothing to do again");
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

}  // namespace launchgap::recording
