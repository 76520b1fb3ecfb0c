#include "harness/stats/trend.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/stats/stats.h"

namespace launchgap {
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
  return stats::median(std::move(slopes)).value_or(0);
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

}  // namespace launchgap
