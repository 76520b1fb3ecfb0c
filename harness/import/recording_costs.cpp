#include "harness/import/recording_costs.h"

#include <algorithm>
#include <vector>

#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

struct Added {
  double median = 0;
  std::optional<stats::Interval> interval;
};

/// The median of the differences, whose interval takes no more than that rounds are independent.
Added added_by(std::vector<double> differences) {
  std::ranges::sort(differences);
  return {stats::median(differences).value_or(0), stats::median_interval(differences)};
}

}  // namespace

void RecordedCalls::add(const Process& process) {
  std::vector<const activity::Call*> calls;
  for (const activity::Call& call : process.trace.calls) {
    if (has_times(call)) calls.push_back(&call);
  }
  std::ranges::sort(calls, {}, [](const activity::Call* call) { return call->begin_ns; });
  std::vector<std::int64_t> ends(process.threads.size(), 0);
  std::int64_t covered_to = 0;
  for (const activity::Call* const call : calls) {
    if (call->begin_ns < ends[call->thread]) continue;  // within another
    ends[call->thread] = call->end_ns;
    ++count;
    sum_ns += static_cast<double>(call->end_ns - call->begin_ns);
    covered_ns += static_cast<double>(
        std::max<std::int64_t>(0, call->end_ns - std::max(covered_to, call->begin_ns)));
    covered_to = std::max(covered_to, call->end_ns);
  }
}

RecordingCost cost_of(const std::string& level,
                      std::span<const TimedStart> plain,
                      std::span<const TimedStart> recorded,
                      const RecordedCalls& calls) {
  std::vector<double> walls, wall_differences, ran_differences;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    walls.push_back(plain[i].wall_s);
    wall_differences.push_back(recorded[i].wall_s - plain[i].wall_s);
    if (plain[i].ran_ns && recorded[i].ran_ns && calls.count > 0 && !calls.overlap())
      ran_differences.push_back((*recorded[i].ran_ns - *plain[i].ran_ns) /
                                static_cast<double>(calls.count));
  }
  RecordingCost cost;
  cost.level = level;
  cost.rounds = static_cast<int>(plain.size());
  cost.plain_wall_s = stats::median(walls).value_or(0);
  const Added wall = added_by(wall_differences);
  cost.wall_s = wall.median;
  if (wall.interval) {
    cost.wall_low_s = wall.interval->low;
    cost.wall_high_s = wall.interval->high;
  }
  cost.calls = calls.count;
  if (ran_differences.size() < plain.size()) return cost;
  const Added call = added_by(ran_differences);
  cost.call_ns = call.median;
  if (call.interval) {
    cost.call_low_ns = call.interval->low;
    cost.call_high_ns = call.interval->high;
  }
  return cost;
}

}  // namespace launchgap::recording
