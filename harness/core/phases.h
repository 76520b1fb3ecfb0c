// Blocks of launch/interference have three phases: as many samples of each, in this order, with
// metrics of their own (quiet_api_ns, disturbed_api_ns, after_api_ns).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace launchgap {

enum class Phase { quiet, disturbed, after };
inline constexpr std::array<std::string_view, 3> kPhases = {"quiet", "disturbed", "after"};

/// The phase of a sample of a block that has, or will have, `samples`.
constexpr Phase phase_of(std::size_t sample, std::size_t samples) {
  const std::size_t each = std::max<std::size_t>(1, samples / kPhases.size());
  return static_cast<Phase>(std::min(sample / each, kPhases.size() - 1));
}

/// "quiet_api_ns" of "api_ns".
inline std::string metric_of(Phase phase, std::string_view metric) {
  return std::string(kPhases.at(static_cast<std::size_t>(phase))) + "_" + std::string(metric);
}

}  // namespace launchgap
