#include "harness/stats/trend.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/stats/stats.h"

namespace launchgap {

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

}  // namespace launchgap
