// When a case has been measured well enough to stop: never because it looks good so far, only
// because more blocks could hardly move its medians.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "harness/core/block.h"

namespace launchgap {

/// The rule: for every metric, the nonparametric 95 % interval of the median of the medians of the
/// blocks so far is at most 1 % of that median wide, and there are six blocks or more, below which
/// there is no such interval. It judges how well this process knows its own median. How far
/// processes are apart it cannot know, so it never makes fewer processes.
class SteadyRule {
 public:
  static constexpr double kWidth = 0.01;

  void add(const Block& block);
  bool steady() const;

 private:
  std::map<std::string_view, std::vector<double>> medians_;  // of the blocks, by metric
};

}  // namespace launchgap
