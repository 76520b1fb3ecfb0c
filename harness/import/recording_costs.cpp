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

RecordingCost cost_of(const std::string& level,
                      std::span<const TimedStart> plain,
                      std::span<const TimedStart> recorded,
                      std::uint64_t launches) {
  std::vector<double> walls, wall_differences, ran_differences;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    walls.push_back(plain[i].wall_s);
    wall_differences.push_back(recorded[i].wall_s - plain[i].wall_s);
    if (plain[i].ran_ns && recorded[i].ran_ns && launches > 0)
      ran_differences.push_back((*recorded[i].ran_ns - *plain[i].ran_ns) /
                                static_cast<double>(launches));
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
  cost.launches = launches;
  if (ran_differences.size() < plain.size()) return cost;
  const Added call = added_by(ran_differences);
  cost.launch_ns = call.median;
  if (call.interval) {
    cost.launch_low_ns = call.interval->low;
    cost.launch_high_ns = call.interval->high;
  }
  return cost;
}

}  // namespace launchgap::recording
