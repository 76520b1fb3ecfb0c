// Numbers and tables for people, and how wide they may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// The columns of the terminal that standard output is; what COLUMNS says goes before. Absent where
/// neither is known: a file or a pipe.
std::optional<std::size_t> terminal_columns();

/// Columns of prose: those of the terminal, from 40 to 100; else 100.
std::size_t text_columns();

/// "2.31 µs", "794 TFLOP/s", three digits, and "95 ns" of a clock's whole ticks; "–" for what is
/// absent. The page has the same rule (reports/launchgap_report/text.py), as of percent_text().
std::string quantity(std::optional<double> value, std::string_view unit);

/// "20 µs", "2.5 ms": a duration that was chosen, with as few digits as it has.
std::string duration_text(std::uint64_t nanoseconds);

/// "1.2 %", "113 %", of a share: two digits, and never in powers of ten.
std::string percent_text(double share);

/// A difference smaller than this ratio, or larger than its inverse, does not count.
inline constexpr double kLeastDifference = 1.05;
/// An interval that reaches beyond this, or its inverse, says too little for "no difference".
inline constexpr double kTooWide = 1.25;

/// "0.41", "2.6", "31": a ratio, to be read before "times". Near 1 and the limits above it has as
/// many digits as it takes to see on which side it lies.
std::string times_text(double ratio);

/// "80 GiB".
std::string bytes_text(double bytes);

/// "64KiB" as 65536; also B, MiB, GiB and TiB, or a number alone. Nothing for other text, and for
/// what does not fit.
std::optional<std::uint64_t> bytes_of_text(std::string_view text);

inline constexpr std::size_t kUuidBytes = 16;
/// A UUID as one writes it.
std::string uuid_text(std::span<const char, kUuidBytes> bytes);
/// The same of what others wrote: empty for another number of bytes, and where all are 0.
std::string recorded_uuid_text(std::string_view bytes);

/// "1 thread", "8 threads".
std::string counted(std::uint64_t number, std::string_view noun);
std::string counted(std::string_view number, std::string_view noun);

/// What stands between the separators; nothing of what is empty.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator);

/// What stands behind "name:" on a line of its own, of those before the first empty line; nothing
/// where there is none.
std::optional<std::string_view> header_field(std::string_view text, std::string_view name);

/// "a, b and c"; the last one may be joined by another word, as "or".
std::string list_text(const std::vector<std::string>& words, std::string_view last = "and");
/// "a, b and 7 more": no more than `most` of them by name.
std::string list_text(const std::set<std::string>& words, std::size_t most);

/// Broken at blanks into lines of at most `width` bytes, all but the first indented; the first has
/// `indent` bytes in front of it already. A word that is longer stays whole.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = text_columns());

/// How many letters must be put in, taken out, changed or swapped with their neighbour to make one
/// text of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// A name that is there, and how far it is from what was asked for: 0 if it begins so.
struct NearName {
  std::size_t far;
  std::string name;
};
/// The nearest first, whether capital or not.
std::vector<NearName> by_nearness(std::string_view asked, const std::vector<std::string>& names);

/// ": did you mean 'launch/null'?", with up to three that are equally near; empty where none of the
/// names is so near that it was probably meant.
std::string did_you_mean(std::string_view asked, const std::vector<std::string>& names);

/// Columns as wide as they need to be; the first row is the header. Text left, numbers right is not
/// told apart: all but the first column align right. Where the terminal has less room, the first
/// cell of a row has a line of its own; where that is too little, every cell has, behind its
/// heading.
std::string table(const std::vector<std::vector<std::string>>& rows,
                  std::optional<std::size_t> columns = terminal_columns());

}  // namespace launchgap
