#include "harness/trace/join.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "harness/stats/stats.h"

namespace launchgap {
namespace {

using activity::Call;
using activity::KernelRun;
using activity::Trace;

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Correlation numbers of launches, by open addressing: numbers are handed out one after another,
/// so a multiplicative hash spreads them well.
class LaunchByCorrelation {
 public:
  explicit LaunchByCorrelation(std::size_t most)
      : entries_(std::bit_ceil(2 * most + 2)), shift_(64 - std::countr_zero(entries_.size())) {}

  /// The launch that has the number already, or kNone after adding it.
  std::uint32_t add(std::uint32_t correlation, std::uint32_t launch) {
    Entry& entry = find_entry(correlation);
    if (entry.launch != kNone) return entry.launch;
    entry = {correlation, launch};
    return kNone;
  }
  std::uint32_t find(std::uint32_t correlation) { return find_entry(correlation).launch; }

 private:
  struct Entry {
    std::uint32_t correlation = 0;
    std::uint32_t launch = kNone;
  };

  Entry& find_entry(std::uint32_t correlation) {
    std::size_t at = std::size_t{correlation} * 0x9E3779B97F4A7C15u >> shift_;
    while (entries_[at].launch != kNone && entries_[at].correlation != correlation)
      at = (at + 1) & (entries_.size() - 1);
    return entries_[at];
  }

  std::vector<Entry> entries_;
  int shift_;
};

/// Whether a record's times can be; counts it if not.
bool times_are_possible(const auto& record, JoinCounts& counts) {
  if (record.begin_ns <= 0 || record.end_ns <= 0) {
    ++counts.zero;
    return false;
  }
  if (record.end_ns < record.begin_ns) {
    ++counts.inverted;
    return false;
  }
  return true;
}

struct LaunchCalls {
  std::vector<std::uint32_t> possible;  // outer before inner
  std::vector<std::uint32_t> impossible;
};

LaunchCalls find_launch_calls(const Trace& trace, JoinCounts& counts) {
  LaunchCalls calls;
  calls.possible.reserve(trace.calls.size());
  for (std::uint32_t i = 0; i < trace.calls.size(); ++i) {
    const Call& call = trace.calls[i];
    if (!activity::is_launch(call.purpose)) continue;
    (times_are_possible(call, counts) ? calls.possible : calls.impossible).push_back(i);
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Call &x = trace.calls[a], &y = trace.calls[b];
    return x.begin_ns != y.begin_ns ? x.begin_ns < y.begin_ns : x.end_ns > y.end_ns;
  };
  if (!std::ranges::is_sorted(calls.possible, before)) std::ranges::sort(calls.possible, before);
  return calls;
}

class Join {
 public:
  Join(const Trace& trace, std::int64_t clock_error_ns)
      : trace_(trace), clock_error_ns_(clock_error_ns), by_correlation_(trace.calls.size()) {
    joined_.counts.dropped = trace.dropped;
    joined_.counts.unknown = trace.unknown;
  }

  Joined run() {
    find_launches();
    assign_kernels();
    note_graphs();
    check_launches();
    add_overheads();
    return std::move(joined_);
  }

 private:
  void find_launches() {
    const LaunchCalls calls = find_launch_calls(trace_, joined_.counts);
    joined_.launches.reserve(calls.possible.size() + calls.impossible.size());
    std::unordered_map<std::uint32_t, std::uint32_t> outer_of_thread;
    std::uint32_t thread = 0, outer = kNone;  // most calls are of the same thread as the one before
    for (const std::uint32_t index : calls.possible) {
      const Call& call = trace_.calls[index];
      if (call.thread != thread || outer == kNone) {
        if (outer != kNone) outer_of_thread[thread] = outer;
        thread = call.thread;
        const auto known = outer_of_thread.find(thread);
        outer = known == outer_of_thread.end() ? kNone : known->second;
      }
      const bool nested =
          outer != kNone && call.end_ns <= trace_.calls[joined_.launches[outer].call].end_ns;
      if (nested) {
        ++joined_.counts.nested;
      } else {
        outer = static_cast<std::uint32_t>(joined_.launches.size());
        joined_.launches.push_back({.call = index, .begin_ns = call.begin_ns});
      }
      if (call.correlation == 0) continue;
      const std::uint32_t owner = by_correlation_.add(call.correlation, outer);
      if (owner != kNone && owner != outer) ++joined_.counts.duplicates;
    }
    launches_with_times_ = joined_.launches.size();
    for (const std::uint32_t index : calls.impossible) {
      const auto launch = static_cast<std::uint32_t>(joined_.launches.size());
      const std::uint32_t correlation = trace_.calls[index].correlation;
      // Where calls nest, the other one has the kernels.
      if (correlation == 0 || by_correlation_.add(correlation, launch) != kNone) continue;
      joined_.launches.push_back(
          {.call = index, .begin_ns = trace_.calls[index].begin_ns, .impossible = true});
    }
    joined_.counts.launches = joined_.launches.size();
  }

  /// A counting sort of the kernels by their launch.
  void assign_kernels() {
    const std::vector<KernelRun>& kernels = trace_.kernels;
    joined_.counts.kernels = kernels.size();
    std::vector<std::uint32_t> owners(kernels.size(), kNone);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::uint32_t owner = by_correlation_.find(kernels[i].correlation);
      if (!times_are_possible(kernels[i], joined_.counts)) {
        if (owner != kNone) joined_.launches[owner].impossible = true;
        continue;
      }
      owners[i] = owner;
      if (owners[i] == kNone) {
        ++joined_.counts.kernels_without_launch;
      } else {
        ++joined_.launches[owners[i]].kernel_count;
        ++joined_.counts.joined;
      }
    }
    std::uint32_t first = 0;
    for (Launch& launch : joined_.launches) {
      launch.first_kernel = first;
      first += std::exchange(launch.kernel_count, 0);
    }
    joined_.kernels.resize(first);
    for (std::uint32_t i = 0; i < kernels.size(); ++i) {
      if (owners[i] == kNone) continue;
      Launch& launch = joined_.launches[owners[i]];
      joined_.kernels[launch.first_kernel + launch.kernel_count++] = i;
    }
  }

  void note_graphs() {
    for (const activity::Graph& graph : trace_.graphs) {
      const std::uint32_t launch = by_correlation_.find(graph.correlation);
      if (launch != kNone) joined_.launches[launch].is_graph = true;
    }
  }

  void check_launches() {
    for (std::size_t i = 0; i < joined_.launches.size(); ++i) {
      Launch& launch = joined_.launches[i];
      if (launch.kernel_count == 0) {
        if (!launch.is_graph && !launch.impossible) ++joined_.counts.launches_without_kernel;
        continue;
      }
      const auto own = std::span(joined_.kernels).subspan(launch.first_kernel, launch.kernel_count);
      std::ranges::sort(own, {}, [&](std::uint32_t k) { return trace_.kernels[k].begin_ns; });
      const Call& call = trace_.calls[launch.call];
      const std::int64_t begin_ns = trace_.kernels[own[0]].begin_ns;
      if (i >= launches_with_times_) {
        if (launch.begin_ns <= 0) launch.begin_ns = begin_ns;
      } else if (begin_ns < call.begin_ns - clock_error_ns_) {
        ++joined_.counts.early;
        launch.impossible = true;
      } else if (begin_ns < call.end_ns) {
        ++joined_.counts.overlap;
      }
    }
  }

  /// What of each launch overheads cover. One with a correlation number belongs to that launch, and
  /// counts from its call until its kernel begins; the others count for the calls during which they
  /// happen. Where they overlap one another they count once.
  void add_overheads() {
    std::vector<activity::Overhead> overheads = trace_.overheads;
    std::ranges::sort(overheads, {}, &activity::Overhead::begin_ns);
    std::vector<std::int64_t> covered_until(joined_.launches.size(), 0);
    const auto add = [&](std::uint32_t i, const activity::Overhead& overhead, std::int64_t end_ns) {
      Launch& launch = joined_.launches[i];
      const std::int64_t from =
          std::max({trace_.calls[launch.call].begin_ns, overhead.begin_ns, covered_until[i]});
      const std::int64_t to = std::min(end_ns, overhead.end_ns);
      if (to <= from) return;
      launch.overhead_ns += to - from;
      covered_until[i] = to;
    };
    std::size_t first = 0;  // of the launches whose calls may still be going on
    for (const activity::Overhead& overhead : overheads) {
      const std::uint32_t owner =
          overhead.correlation == 0 ? kNone : by_correlation_.find(overhead.correlation);
      if (owner != kNone) {
        add(owner, overhead, until(joined_.launches[owner]));
        continue;
      }
      const auto call_of = [&](std::size_t i) -> const Call& {
        return trace_.calls[joined_.launches[i].call];
      };
      while (first < joined_.launches.size() && call_of(first).end_ns <= overhead.begin_ns) ++first;
      for (std::size_t i = first;
           i < joined_.launches.size() && call_of(i).begin_ns < overhead.end_ns;
           ++i) {
        add(static_cast<std::uint32_t>(i), overhead, call_of(i).end_ns);
      }
    }
  }

  std::int64_t until(const Launch& launch) const {
    return launch.kernel_count > 0 ? trace_.kernels[joined_.kernels[launch.first_kernel]].begin_ns
                                   : trace_.calls[launch.call].end_ns;
  }

  const Trace& trace_;
  std::int64_t clock_error_ns_;
  LaunchByCorrelation by_correlation_;
  std::size_t launches_with_times_ = 0;  // the first; the calls of the others cannot be
  Joined joined_;
};

}  // namespace

JoinCounts& JoinCounts::operator+=(const JoinCounts& other) {
  for (const auto member : {&JoinCounts::launches,
                            &JoinCounts::kernels,
                            &JoinCounts::joined,
                            &JoinCounts::kernels_without_launch,
                            &JoinCounts::launches_without_kernel,
                            &JoinCounts::dropped,
                            &JoinCounts::unknown,
                            &JoinCounts::zero,
                            &JoinCounts::inverted,
                            &JoinCounts::early,
                            &JoinCounts::duplicates,
                            &JoinCounts::overlap,
                            &JoinCounts::nested}) {
    this->*member += other.*member;
  }
  return *this;
}

std::string JoinCounts::describe_impossible() const {
  const std::pair<std::uint64_t, const char*> kinds[] = {
      {dropped, "dropped"},
      {unknown, "of an unknown kind"},
      {zero, "without a time"},
      {inverted, "that end before they begin"},
      {early, "of kernels that begin before their launch"},
      {duplicates, "with another launch's correlation number"}};
  std::string text;
  for (const auto& [count, what] : kinds) {
    if (count == 0) continue;
    text += fmt::format(
        "{}{} record{} {}", text.empty() ? "" : ", ", count, count == 1 ? "" : "s", what);
  }
  return text;
}

Joined join(const Trace& trace, std::int64_t clock_error_ns) {
  return Join(trace, clock_error_ns).run();
}

std::vector<double> launch_times(const activity::Trace& trace,
                                 const Joined& joined,
                                 const std::function<bool(std::int64_t)>& belongs) {
  std::vector<double> times;
  for (const Launch& launch : joined.launches) {
    if (launch.kernel_count == 0 || !belongs(launch.begin_ns)) continue;
    const activity::KernelRun& kernel = trace.kernels[joined.kernels_of(launch).front()];
    times.push_back(static_cast<double>(kernel.begin_ns - launch.begin_ns));
  }
  return times;
}

std::int64_t scatter_of_launches(std::vector<double> launch_ns) {
  constexpr std::size_t kFewest = 20;
  constexpr double kDeviations = 5, kMadOfNormal = 1.4826, kMost = 5'000;
  std::erase_if(launch_ns, [](double value) { return std::isnan(value); });
  if (launch_ns.size() < kFewest) return 0;
  const double centre = *stats::median(launch_ns);
  for (double& value : launch_ns) value = std::abs(value - centre);
  return static_cast<std::int64_t>(
      std::min(kMost, std::ceil(kDeviations * kMadOfNormal * *stats::median(launch_ns))));
}

}  // namespace launchgap
