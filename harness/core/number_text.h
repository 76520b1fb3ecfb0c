// Numbers in texts of others.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace launchgap {

/// Takes the number that a text begins with off it; nothing where it begins with none, or with one
/// that the type does not hold. Whole numbers may have another `base` than 10.
template <class Number>
std::optional<Number> take_number(std::string_view& text, auto... base) {
  Number number{};
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The number that the whole text is.
template <class Number>
std::optional<Number> number_of_text(std::string_view text, auto... base) {
  const std::optional<Number> number = take_number<Number>(text, base...);
  return text.empty() ? number : std::nullopt;
}

}  // namespace launchgap
