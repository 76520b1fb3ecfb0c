// Times that recorders write as decimal text, exactly: a double has no room for Unix nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace launchgap::recording {

/// "1712195495505543.2" microseconds as 1712195495505543200 ns; rounded to whole nanoseconds,
/// halves away from zero. Takes a sign, a fraction and a power of ten. Nothing for text that is no
/// decimal number, and for what does not fit.
std::optional<std::int64_t> nanoseconds_of_us(std::string_view text);

/// A whole number, also one that is written "7.0" or "7e0"; nothing for others and for what does
/// not fit.
std::optional<std::int64_t> integer_of(std::string_view text);

/// The same from 0 to 2^64 - 1.
std::optional<std::uint64_t> natural_of(std::string_view text);

}  // namespace launchgap::recording
