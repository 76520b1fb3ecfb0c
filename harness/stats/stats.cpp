#include "harness/stats/stats.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/stats/distributions.h"
#include "harness/stats/moments.h"

namespace launchgap::stats {
namespace {

/// Between which two of `n` ascending values a quantile lies: the first, and how far behind it.
struct Place {
  std::size_t below;
  double fraction;
};

Place place_of(std::size_t n, double p) {
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(n - 1);
  const auto below = static_cast<std::size_t>(position);
  return {below, position - static_cast<double>(below)};
}

template <class Number>
std::optional<double> select(std::span<Number> values, double p) {
  if (values.empty()) return std::nullopt;
  const auto [below, fraction] = place_of(values.size(), p);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::ranges::nth_element(values, at);
  const auto low = static_cast<double>(*at);
  if (below + 1 == values.size()) return low;
  const auto high = static_cast<double>(std::ranges::min(values.subspan(below + 1)));
  return low + fraction * (high - low);
}

Scatter scatter_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  return {n, sum_of_squared_deviations(values) / (n - 1)};
}

}  // namespace

std::optional<double> quantile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return std::nullopt;
  const auto [below, fraction] = place_of(sorted.size(), p);
  if (below + 1 == sorted.size()) return sorted.back();
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

std::optional<double> quantile_in_place(std::span<double> values, double p) {
  return select(values, p);
}

std::optional<double> quantile_in_place(std::span<std::int64_t> values, double p) {
  return select(values, p);
}

std::optional<double> median(std::vector<double> values) {
  return select(std::span(values), 0.5);
}

std::optional<double> median_of_others(std::vector<double> values, std::size_t own) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(own));
  return median(std::move(values));
}

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return sum_of(values, [](double value) { return value; }) / static_cast<double>(values.size());
}

std::optional<std::vector<double>> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    logs.push_back(std::log(value));
  }
  return logs;
}

std::optional<double> geometric_mean(std::span<const double> values) {
  const auto all = logarithms(values);
  const auto mean_logarithm = all ? mean(*all) : std::nullopt;
  return mean_logarithm ? std::optional(std::exp(*mean_logarithm)) : std::nullopt;
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
  return select(std::span(deviations), 0.5);
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
  std::size_t k = 1;
  while (k < n / 2 &&
         binomial_at_most(static_cast<double>(n), 0.5, static_cast<double>(k)) <= kTail)
    ++k;
  return Interval{sorted[k - 1], sorted[n - k]};
}

double welch_reach(const Scatter& a, const Scatter& b, double tail) {
  const double u = a.variance / a.n, v = b.variance / b.n;
  if (u + v == 0) return 0;
  const double share = u / (u + v);
  const double freedom = 1 / (share * share / (a.n - 1) + (1 - share) * (1 - share) / (b.n - 1));
  return student_t(freedom, tail) * std::sqrt(u + v);
}

std::optional<double> pooled_reach(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail) {
  if (a.empty() || b.empty() || a.size() + b.size() < 4) return std::nullopt;
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size());
  const double freedom = n_a + n_b - 2;
  const double variance = (sum_of_squared_deviations(a) + sum_of_squared_deviations(b)) / freedom;
  return student_t(freedom, tail) * std::sqrt(variance * (1 / n_a + 1 / n_b));
}

std::optional<Estimate> difference(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const double value = mean_above(a[0], a) - mean_above(a[0], b);
  const double reach = welch_reach(scatter_of(a), scatter_of(b), tail);
  return Estimate{value, {value - reach, value + reach}};
}

namespace {

bool has_logarithm(double value) {
  return value > 0 && std::isfinite(value);
}

/// log(value / pivot), exact to a rounding or two however near they are.
double log_ratio(double value, double pivot) {
  const double difference = value - pivot;
  return std::abs(difference) < 0.5 * pivot ? std::log1p(difference / pivot)
                                            : std::log(value) - std::log(pivot);
}

}  // namespace

std::optional<std::vector<LogMoments>> log_moments(std::span<const std::vector<double>> groups) {
  std::vector<LogMoments> moments;
  std::vector<double> logs;
  double pivot = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::vector<double>& group = groups[i];
    if (!std::ranges::all_of(group, has_logarithm)) return std::nullopt;
    if (group.empty()) continue;
    if (moments.empty()) pivot = group.front();
    logs.resize(group.size());
    std::ranges::transform(
        group, logs.begin(), [pivot](double value) { return log_ratio(value, pivot); });
    moments.push_back({i,
                       static_cast<double>(logs.size()),
                       mean_above(0, logs),
                       sum_of_squared_deviations(logs)});
  }
  return moments;
}

namespace {

/// How many of the ways to choose n of 2n ranks have each value of U: the number of pairs of which
/// the chosen one is the larger.
std::vector<double> mann_whitney_counts(std::size_t n) {
  // ways[k][u]: k are chosen so far.
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(n * n + 1, 0));
  ways[0][0] = 1;
  for (std::size_t rank = 0; rank < 2 * n; ++rank) {
    for (std::size_t k = std::min(rank + 1, n); k > 0; --k) {
      const std::size_t below = rank - (k - 1);  // ranks that are not chosen
      if (below > n) continue;
      for (std::size_t u = n * n + 1; u-- > below;) ways[k][u] += ways[k - 1][u - below];
    }
  }
  return ways[n];
}

}  // namespace

double theil_sen_slope(std::span<const double> values) {
  std::vector<double> slopes;
  for (std::size_t j = 1; j < values.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i)
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
  }
  return median(std::move(slopes)).value_or(0);
}

double mann_kendall_rise_p(std::span<const double> values) {
  if (values.size() < 4) return 1;
  double s = 0;
  for (std::size_t j = 1; j < values.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i)
      s += (values[j] > values[i] ? 1 : 0) - (values[j] < values[i] ? 1 : 0);
  }
  const auto spread = [](double n) { return n * (n - 1) * (2 * n + 5); };
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  double variance = spread(static_cast<double>(values.size()));
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto end = std::upper_bound(at, sorted.end(), *at);
    variance -= spread(static_cast<double>(end - at));
    at = end;
  }
  variance /= 18;
  if (variance <= 0) return 1;  // all are equal
  const double z = (s > 0 ? s - 1 : s < 0 ? s + 1 : 0) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2)) / 2;
}

double rank_sum_p(std::span<const double> early, std::span<const double> late) {
  const std::size_t n = early.size();
  double greater = 0;
  for (const double x : late) {
    for (const double y : early) greater += x > y ? 1 : x == y ? 0.5 : 0;
  }
  const auto pairs = static_cast<double>(n * n);
  const double extreme = std::max(greater, pairs - greater);
  const std::vector<double> counts = mann_whitney_counts(n);
  double all = 0, beyond = 0;
  for (std::size_t u = 0; u < counts.size(); ++u) {
    all += counts[u];
    if (static_cast<double>(u) >= std::floor(extreme)) beyond += counts[u];
  }
  return std::min(1.0, 2 * beyond / all);
}

}  // namespace launchgap::stats
