// A quantile of many whole numbers without a copy of them: a recording may have millions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace launchgap::recording {

/// As everywhere (type 7); 0 of none. The order of `values` is lost.
inline double quantile_in_place(std::span<std::int64_t> values, double p) {
  if (values.empty()) return 0;
  const double place = static_cast<double>(values.size() - 1) * p;
  const auto below = static_cast<std::size_t>(place);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::ranges::nth_element(values, at);
  const auto low = static_cast<double>(*at);
  if (below + 1 == values.size()) return low;
  const auto high = static_cast<double>(std::ranges::min(values.subspan(below + 1)));
  return low + (high - low) * (place - static_cast<double>(below));
}

}  // namespace launchgap::recording
