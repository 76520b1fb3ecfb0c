#include "harness/stats/stats.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/binomial.hpp>

#include "harness/stats/moments.h"

namespace launchgap::stats {

std::optional<double> quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::nullopt;
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return sum_of(values, [](double value) { return value; }) / static_cast<double>(values.size());
}

std::optional<double> standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  return std::sqrt(sum_of_squared_deviations(values) / static_cast<double>(values.size() - 1));
}

std::optional<double> median_absolute_deviation(std::span<const double> sorted) {
  const std::optional<double> median = quantile(sorted, 0.5);
  if (!median) return std::nullopt;
  std::vector<double> deviations(sorted.size());
  std::ranges::transform(
      sorted, deviations.begin(), [&](double value) { return std::abs(value - *median); });
  const std::size_t n = deviations.size();
  const auto middle = deviations.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::ranges::nth_element(deviations, middle);
  if (n % 2 == 1) return *middle;
  return (*std::max_element(deviations.begin(), middle) + *middle) / 2;
}

std::optional<double> outlier_share(std::span<const double> sorted) {
  if (sorted.size() < 4) return std::nullopt;
  const double q1 = *quantile(sorted, 0.25), q3 = *quantile(sorted, 0.75);
  const double reach = 1.5 * (q3 - q1);
  const auto below = std::ranges::lower_bound(sorted, q1 - reach) - sorted.begin();
  const auto above = sorted.end() - std::ranges::upper_bound(sorted, q3 + reach);
  return static_cast<double>(below + above) / static_cast<double>(sorted.size());
}

std::optional<double> lag1_autocorrelation(std::span<const double> in_order) {
  if (in_order.size() < 3) return std::nullopt;
  const FromMean deviation(in_order);
  const double variation = sum_of_squared_deviations(in_order);
  if (variation == 0) return std::nullopt;
  Sum products;
  for (std::size_t i = 0; i + 1 < in_order.size(); ++i)
    products.add(deviation(in_order[i]) * deviation(in_order[i + 1]));
  return products.value() / variation;
}

std::optional<Interval> median_interval(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  if (n < 6) return std::nullopt;
  // The k-th smallest and k-th largest enclose the median unless fewer than k values lie on one
  // side of it: coverage 1 - 2 P(X < k). The largest k with P(X < k) <= 2.5 %.
  const boost::math::binomial_distribution<double> below(static_cast<double>(n), 0.5);
  std::size_t k = 1;
  while (k < n / 2 && boost::math::cdf(below, static_cast<double>(k)) <= kTail) ++k;
  return Interval{sorted[k - 1], sorted[n - k]};
}

}  // namespace launchgap::stats
