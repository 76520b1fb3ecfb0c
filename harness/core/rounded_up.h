// Sizes and addresses in whole units.
#pragma once

#include <cstdint>

namespace launchgap {

/// The smallest multiple of `unit` that is not below `value`.
constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace launchgap
