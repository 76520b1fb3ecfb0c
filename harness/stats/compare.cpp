#include "harness/stats/compare.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <boost/math/distributions/students_t.hpp>

#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

/// Student's t that is exceeded on either side with probability `tail`.
double student_t(double freedom, double tail) {
  return quantile(complement(boost::math::students_t(freedom), tail));
}

double variance_of_mean(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return sum_of_squared_deviations(values) / (n - 1) / n;
}

struct Level {
  std::size_t group;
  double size;
  double center;   // mean of the logarithms
  double squares;  // sum of their squared deviations from it
};

std::vector<Level> levels_of(std::span<const std::vector<double>> groups) {
  std::vector<Level> levels;
  std::vector<double> logs;
  double pivot = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) continue;
    if (pivot == 0) pivot = groups[i].front();
    logs.resize(groups[i].size());
    std::ranges::transform(
        groups[i], logs.begin(), [pivot](double value) { return log_ratio(value, pivot); });
    levels.push_back({i,
                      static_cast<double>(logs.size()),
                      mean_above(0, logs),
                      sum_of_squared_deviations(logs)});
  }
  return levels;
}

/// The median, or of two middle values the one nearer to `center`.
double middle_near(double center, std::vector<double> values) {
  std::ranges::sort(values);
  const double below = values[(values.size() - 1) / 2], above = values[values.size() / 2];
  return std::abs(center - below) <= std::abs(center - above) ? below : above;
}

}  // namespace

std::optional<Estimate> difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double value = mean_above(a[0], a) - mean_above(a[0], b);
  const double u = variance_of_mean(a), v = variance_of_mean(b);
  if (u + v == 0) return Estimate{value, {value, value}};
  const double share = u / (u + v);
  const double freedom = 1 / (share * share / static_cast<double>(a.size() - 1) +
                              (1 - share) * (1 - share) / static_cast<double>(b.size() - 1));
  const double reach = student_t(freedom, 0.025) * std::sqrt(u + v);
  return Estimate{value, {value - reach, value + reach}};
}

std::vector<Deviation> deviations(std::span<const std::vector<double>> groups) {
  std::vector<Deviation> deviations(groups.size());
  for (const std::vector<double>& group : groups) {
    if (!std::ranges::all_of(group, has_logarithm)) return deviations;
  }
  const std::vector<Level> levels = levels_of(groups);
  if (levels.size() < 2) return deviations;
  const auto k = static_cast<double>(levels.size());
  const double freedom = sum_of(levels, &Level::size) - k;
  const double pooled = sum_of(levels, &Level::squares) / freedom;
  const double inverse_sizes = sum_of(levels, [](const Level& level) { return 1 / level.size; });

  for (const Level& level : levels) {
    std::vector<double> others;
    for (const Level& other : levels) {
      if (&other != &level) others.push_back(other.center);
    }
    const double log_ratio = level.center - middle_near(level.center, others);
    Deviation& deviation = deviations[level.group];
    deviation.ratio = std::exp(log_ratio);
    if (level.size < 3) continue;
    const double own = std::max(pooled, level.squares / (level.size - 1));
    const double of_others = std::min(1.0, std::numbers::pi / (2 * (k - 1))) * pooled *
                             (inverse_sizes - 1 / level.size) / (k - 1);
    const double reach =
        student_t(freedom, 0.025 / k) * std::sqrt(own / level.size + of_others);
    deviation.interval = Interval{std::exp(log_ratio - reach), std::exp(log_ratio + reach)};
    deviation.deviates = std::abs(log_ratio) > std::max(reach, std::log(kLeastDeviation));
  }
  return deviations;
}

}  // namespace launchgap::stats
