// What models of several groups need of the logarithms of their values: those of harness/stats and
// harness/rules.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace launchgap::stats {

struct LogMoments {
  std::size_t group;  // its index
  double size;
  double mean;     // of the logarithms, less the logarithm of the first value of all
  double squares;  // sum of the logarithms' squared deviations from their mean
};

/// Of each group with values. Relative to the first value of all, since a logarithm itself has no
/// room for spreads that the values have. Absent if a value is not positive and finite.
std::optional<std::vector<LogMoments>> log_moments(std::span<const std::vector<double>> groups);

}  // namespace launchgap::stats
