#include "harness/stats/compare.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/students_t.hpp>

#include "harness/stats/log_moments.h"
#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

double variance_of_mean(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return sum_of_squared_deviations(values) / (n - 1) / n;
}

/// The median, or of two middle values the one nearer to `center`.
double middle_near(double center, std::vector<double> values) {
  std::ranges::sort(values);
  const double below = values[(values.size() - 1) / 2], above = values[values.size() / 2];
  return std::abs(center - below) <= std::abs(center - above) ? below : above;
}

}  // namespace

double student_t(double freedom, double tail) {
  return quantile(complement(boost::math::students_t(freedom), tail));
}

std::optional<Estimate> difference(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double value = mean_above(a[0], a) - mean_above(a[0], b);
  const double u = variance_of_mean(a), v = variance_of_mean(b);
  if (u + v == 0) return Estimate{value, {value, value}};
  const double share = u / (u + v);
  const double freedom = 1 / (share * share / static_cast<double>(a.size() - 1) +
                              (1 - share) * (1 - share) / static_cast<double>(b.size() - 1));
  const double reach = student_t(freedom, tail) * std::sqrt(u + v);
  return Estimate{value, {value - reach, value + reach}};
}

std::vector<Deviation> deviations(std::span<const std::vector<double>> groups,
                                  std::size_t comparisons) {
  std::vector<Deviation> deviations(groups.size());
  const auto levels = log_moments(groups);
  if (!levels || levels->size() < 2) return deviations;
  const auto k = static_cast<double>(levels->size());
  const double freedom = sum_of(*levels, &LogMoments::size) - k;
  const double pooled = sum_of(*levels, &LogMoments::squares) / freedom;
  const double inverse_sizes = sum_of(*levels, [](const auto& level) { return 1 / level.size; });

  for (const LogMoments& level : *levels) {
    std::vector<double> others;
    for (const LogMoments& other : *levels) {
      if (&other != &level) others.push_back(other.mean);
    }
    const double log_ratio = level.mean - middle_near(level.mean, others);
    Deviation& deviation = deviations[level.group];
    deviation.ratio = std::exp(log_ratio);
    if (level.size < 3) continue;
    const double own = std::max(pooled, level.squares / (level.size - 1));
    const double of_others =
        std::min(1.0, 2 / (k - 1)) * pooled * (inverse_sizes - 1 / level.size) / (k - 1);
    const double tail = kTail / (k * static_cast<double>(comparisons));
    const double reach = student_t(freedom, tail) * std::sqrt(own / level.size + of_others);
    deviation.interval = Interval{std::exp(log_ratio - reach), std::exp(log_ratio + reach)};
    deviation.deviates = std::abs(log_ratio) > std::max(reach, std::log(kLeastDeviation));
  }
  return deviations;
}

}  // namespace launchgap::stats
