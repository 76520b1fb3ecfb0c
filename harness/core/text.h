// Numbers and tables for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// "2.31 µs", "794 TFLOP/s", three digits; "–" for what is absent.
std::string quantity(std::optional<double> value, std::string_view unit);

/// "20 µs", "2.5 ms": a duration that was chosen, with as few digits as it has.
std::string duration_text(std::uint64_t nanoseconds);

/// "1.2 %", "113 %", of a share: two digits, and never in powers of ten.
std::string percent_text(double share);

/// "0.41", "2.6", "31": a ratio, to be read before "times".
std::string times_text(double ratio);

/// "80 GiB".
std::string bytes_text(double bytes);

/// "64KiB" as 65536; also B, MiB, GiB and TiB, or a number alone. Nothing for other text, and for
/// what does not fit.
std::optional<std::uint64_t> bytes_of_text(std::string_view text);

/// "1 thread", "8 threads".
std::string counted(std::uint64_t number, std::string_view noun);
std::string counted(std::string_view number, std::string_view noun);

/// "a, b and c".
std::string list_text(const std::vector<std::string>& words);

/// Broken at blanks into lines of at most `width` bytes, all but the first indented; the first has
/// `indent` bytes in front of it already. A word that is longer stays whole.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 100);

/// How many letters must be put in, taken out or changed to make one text of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Columns as wide as they need to be; the first row is the header. Text left, numbers right is not
/// told apart: all but the first column align right.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace launchgap
