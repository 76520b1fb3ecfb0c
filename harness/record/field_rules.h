// What a struct says of one of its fields beside its type (fields.h): the third argument of what
// names it. Any class will do that has these two members.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace launchgap {

/// Of a number, and of each number of a list.
struct Limits {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool least_is_out = false;

  bool holds(const auto& value) const {
    if constexpr (requires { value.begin(); }) {
      for (const auto& element : value) {
        if (!holds(element)) return false;
      }
      return true;
    } else {
      const auto number = static_cast<double>(value);
      return (least_is_out ? number > least : number >= least) && number <= most;
    }
  }
  std::string text() const {
    if (least_is_out) return fmt::format("above {}", least);
    if (most == std::numeric_limits<double>::max()) return fmt::format("at least {}", least);
    return fmt::format("from {} to {}", least, most);
  }
};

constexpr Limits at_least(double least) {
  return {.least = least};
}
constexpr Limits above(double least) {
  return {.least = least, .least_is_out = true};
}
constexpr Limits between(double least, double most) {
  return {.least = least, .most = most};
}

/// Of a text or a list.
struct NotEmpty {
  static bool holds(const auto& value) { return !value.empty(); }
  static std::string text() { return "not empty"; }
};
inline constexpr NotEmpty kNotEmpty;

/// A value stands in JSON by the name that it has here.
template <class Value>
struct Names {
  std::vector<std::pair<std::string_view, Value>> all;
};

}  // namespace launchgap
