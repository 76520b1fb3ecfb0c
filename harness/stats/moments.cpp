#include "harness/stats/moments.h"

#include <algorithm>

namespace launchgap::stats {
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

}  // namespace launchgap::stats
