#include "harness/rules/outliers.h"

#include <algorithm>
#include <cmath>

#include "harness/stats/moments.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {
namespace {

/// The median, or of two middle values the one nearer to `center`.
double middle_near(double center, std::vector<double> values) {
  std::ranges::sort(values);
  const double below = values[(values.size() - 1) / 2], above = values[values.size() / 2];
  return std::abs(center - below) <= std::abs(center - above) ? below : above;
}

}  // namespace

std::vector<Deviation> deviations(std::span<const std::vector<double>> groups,
                                  std::size_t comparisons) {
  std::vector<Deviation> deviations(groups.size());
  const auto levels = stats::log_moments(groups);
  if (!levels || levels->size() < 2) return deviations;
  const auto k = static_cast<double>(levels->size());
  const double freedom = stats::sum_of(*levels, &stats::LogMoments::size) - k;
  const double pooled = stats::sum_of(*levels, &stats::LogMoments::squares) / freedom;
  const double inverse_sizes =
      stats::sum_of(*levels, [](const auto& level) { return 1 / level.size; });

  for (const stats::LogMoments& level : *levels) {
    std::vector<double> others;
    for (const stats::LogMoments& other : *levels) {
      if (&other != &level) others.push_back(other.mean);
    }
    const double log_ratio = level.mean - middle_near(level.mean, others);
    Deviation& deviation = deviations[level.group];
    deviation.ratio = std::exp(log_ratio);
    if (level.size < 3) continue;
    const double own = std::max(pooled, level.squares / (level.size - 1));
    const double of_others =
        std::min(1.0, 2 / (k - 1)) * pooled * (inverse_sizes - 1 / level.size) / (k - 1);
    const double tail = stats::kTail / (k * static_cast<double>(comparisons));
    const double reach = stats::student_t(freedom, tail) * std::sqrt(own / level.size + of_others);
    deviation.interval = stats::Interval{std::exp(log_ratio - reach), std::exp(log_ratio + reach)};
    deviation.deviates = std::abs(log_ratio) > std::max(reach, std::log(kLeastDeviation));
  }
  return deviations;
}

}  // namespace launchgap::rules
