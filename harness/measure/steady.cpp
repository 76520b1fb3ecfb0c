#include "harness/measure/steady.h"

#include <algorithm>
#include <cmath>

#include "harness/stats/stats.h"

namespace launchgap {

void SteadyRule::add(const Block& block) {
  for (std::size_t metric = 0; metric < block.metrics().size(); ++metric) {
    std::vector<double> values(block.values(metric).begin(), block.values(metric).end());
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (const auto median = stats::median(std::move(values)))
      medians_[block.metrics()[metric]].push_back(*median);
  }
}

bool SteadyRule::steady() const {
  return !medians_.empty() && std::ranges::all_of(medians_, [](const auto& entry) {
    std::vector<double> medians = entry.second;
    std::ranges::sort(medians);
    const auto interval = stats::median_interval(medians);
    if (!interval) return false;
    return interval->high - interval->low <= kWidth * std::abs(*stats::quantile(medians, 0.5));
  });
}

}  // namespace launchgap
