// Sizes that a user asks for in place of a benchmark's own: `--sweep bytes=1040384:1056768:512`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// The sizes of an axis, smallest first.
struct Sweep {
  std::string axis;
  std::vector<std::uint64_t> sizes;
};

inline constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 40;
inline constexpr std::size_t kMostSizes = 4096;

/// Of "axis=from:to:step", both ends included; without a step it is 1. Throws UsageError that says
/// what is wrong: another form, a number below 1 or above kLargestSize, more than kMostSizes sizes,
/// an axis that no benchmark has as a size.
Sweep parse_sweep(std::string_view text);

/// From now on this process plans these sizes. Throws UsageError for an axis that is there twice.
void use_sweeps(std::vector<Sweep> sweeps);

/// Those of an axis; null where the user has none.
const Sweep* sweep_of(std::string_view axis);

/// Whether the user has any.
bool has_sweeps();

}  // namespace launchgap
