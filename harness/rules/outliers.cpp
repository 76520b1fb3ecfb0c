#include "harness/rules/outliers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/stats/distributions.h"
#include "harness/stats/moments.h"

namespace launchgap::rules {
namespace {

/// The median of ascending values without that at `own`, or of their two middle ones the one nearer
/// to it.
double middle_of_others(const std::vector<double>& sorted, std::size_t own) {
  const auto other = [&](std::size_t i) { return sorted[i < own ? i : i + 1]; };
  const std::size_t others = sorted.size() - 1;
  const double below = other((others - 1) / 2), above = other(others / 2);
  return std::abs(sorted[own] - below) <= std::abs(sorted[own] - above) ? below : above;
}

/// The median of the groups' variances, each corrected for what a median of it lacks; of those with
/// two values or more.
std::optional<double> typical_variance(const std::vector<stats::LogMoments>& levels) {
  std::vector<double> variances;
  for (const stats::LogMoments& level : levels) {
    if (level.size < 2) continue;
    const double middle = stats::chi_squared_quantile(level.size - 1, 0.5);
    variances.push_back(level.squares / middle);
  }
  return stats::median(std::move(variances));
}

}  // namespace

std::vector<Deviation> deviations(std::span<const std::vector<double>> groups,
                                  std::size_t comparisons) {
  std::vector<Deviation> deviations(groups.size());
  const auto levels = stats::log_moments(groups);
  if (!levels || levels->size() < 2) return deviations;
  const auto k = static_cast<double>(levels->size());
  double freedom = stats::sum_of(*levels, &stats::LogMoments::size) - k;
  double pooled = stats::sum_of(*levels, &stats::LogMoments::squares) / freedom;
  if (levels->size() >= kGroupsWithSpread) {
    if (const auto typical = typical_variance(*levels); typical && *typical < pooled) {
      pooled = *typical;
      freedom /= 2;
    }
  }
  const double inverse_sizes =
      stats::sum_of(*levels, [](const auto& level) { return 1 / level.size; });

  const double tail = stats::kTail / (k * static_cast<double>(comparisons));
  const double t = freedom > 0 ? stats::student_t(freedom, tail) : 0;  // of no group else
  std::vector<double> sorted;
  for (const stats::LogMoments& level : *levels) sorted.push_back(level.mean);
  std::ranges::sort(sorted);
  double spread = 0;  // that a group must be beyond
  if (sorted.size() >= kGroupsWithSpread) {
    constexpr double kOfNormal = 1.4826;  // standard deviation over median absolute deviation
    spread = stats::student_t(k - 1, tail) * kOfNormal * *stats::median_absolute_deviation(sorted);
  }

  for (const stats::LogMoments& level : *levels) {
    const auto own_place =
        static_cast<std::size_t>(std::ranges::lower_bound(sorted, level.mean) - sorted.begin());
    const double log_ratio = level.mean - middle_of_others(sorted, own_place);
    Deviation& deviation = deviations[level.group];
    deviation.ratio = std::exp(log_ratio);
    if (level.size < 3) continue;
    const double own = std::max(pooled, level.squares / (level.size - 1));
    const double of_others =
        std::min(1.0, 2 / (k - 1)) * pooled * (inverse_sizes - 1 / level.size) / (k - 1);
    const double reach = t * std::sqrt(own / level.size + of_others);
    deviation.interval = stats::Interval{std::exp(log_ratio - reach), std::exp(log_ratio + reach)};
    deviation.deviates = std::abs(log_ratio) > std::max({reach, spread, std::log(kLeastDeviation)});
  }
  return deviations;
}

}  // namespace launchgap::rules
