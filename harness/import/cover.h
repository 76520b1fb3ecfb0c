// How much of a stretch of time some intervals cover.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace launchgap::recording {

/// Intervals, united where they overlap. Add all, then build(), then ask.
class Cover {
 public:
  void add(std::int64_t begin_ns, std::int64_t end_ns) {
    if (end_ns > begin_ns) intervals_.push_back({begin_ns, end_ns, 0});
  }

  void build() {
    std::ranges::sort(intervals_, {}, &Interval::begin_ns);
    std::vector<Interval> united;
    std::int64_t before = 0;
    for (const Interval& interval : intervals_) {
      if (!united.empty() && interval.begin_ns <= united.back().end_ns) {
        united.back().end_ns = std::max(united.back().end_ns, interval.end_ns);
        continue;
      }
      if (!united.empty()) before += united.back().end_ns - united.back().begin_ns;
      united.push_back({interval.begin_ns, interval.end_ns, before});
    }
    intervals_ = std::move(united);
  }

  bool empty() const { return intervals_.empty(); }

  /// Of the time from `from_ns` to `to_ns`.
  std::int64_t within(std::int64_t from_ns, std::int64_t to_ns) const {
    return to_ns <= from_ns ? 0 : until(to_ns) - until(from_ns);
  }

 private:
  struct Interval {
    std::int64_t begin_ns, end_ns;
    std::int64_t before_ns;  // what the intervals before it cover
  };

  /// All that is covered before a time.
  std::int64_t until(std::int64_t time_ns) const {
    const auto next = std::ranges::upper_bound(intervals_, time_ns, {}, &Interval::begin_ns);
    if (next == intervals_.begin()) return 0;
    const Interval& last = *std::prev(next);
    return last.before_ns + std::min(time_ns, last.end_ns) - last.begin_ns;
  }

  std::vector<Interval> intervals_;
};

}  // namespace launchgap::recording
