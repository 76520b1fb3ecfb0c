#include "harness/core/text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/number_text.h"

namespace launchgap {
namespace {

/// Three significant digits, without an exponent up to 1e12.
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  // Nobody measures that: hundreds of digits would make no table.
  if (magnitude >= 1e12) return fmt::format("{:.2e}", value);
  if (magnitude == 0) return "0";
  if (magnitude < 1e-9) return fmt::format("{:.2e}", value);
  // The exponent of what it is rounded to: 9.996 has the digits of 10.0.
  const std::string rounded = fmt::format("{:.2e}", magnitude);
  const int exponent = std::atoi(rounded.c_str() + rounded.find('e') + 1);
  return fmt::format("{:.{}f}", value, std::clamp(2 - exponent, 0, 12));
}

/// A unit in which a quantity is shown, and what one of it is in the unit in which it is kept.
struct ShownUnit {
  std::string_view kept;
  double factor;
  std::string_view name;
};

/// Of each unit the largest first. reports/launchgap_report/text.py has the same, which a test
/// compares.
constexpr ShownUnit kShownUnits[] = {
    {"ns", 1e9, "s"},
    {"ns", 1e6, "ms"},
    {"ns", 1e3, "µs"},
    {"ns", 1, "ns"},
    {"TFLOP/s", 1e3, "PFLOP/s"},
    {"TFLOP/s", 1, "TFLOP/s"},
    {"TFLOP/s", 1e-3, "GFLOP/s"},
    {"TFLOP/s", 1e-6, "MFLOP/s"},
    {"GB/s", 1e3, "TB/s"},
    {"GB/s", 1, "GB/s"},
    {"GB/s", 1e-3, "MB/s"},
    {"B", 1099511627776.0, "TiB"},
    {"B", 1073741824.0, "GiB"},
    {"B", 1048576.0, "MiB"},
    {"B", 1024.0, "KiB"},
    {"B", 1, "B"},
    {"1", 1, ""},
};

/// The largest of which the value has one, rounded to three digits; of less than one of any the
/// smallest.
ShownUnit shown_unit(double value, std::string_view unit) {
  ShownUnit found{unit, 1, unit};
  for (const ShownUnit& shown : kShownUnits) {
    if (shown.kept != unit) continue;
    found = shown;
    if (value == 0 ? shown.factor == 1 : std::abs(value) >= 0.9995 * shown.factor) break;
  }
  return found;
}

/// Characters on the screen, for text whose bytes may be more: every byte but UTF-8's continuation
/// bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string duration_text(std::uint64_t nanoseconds) {
  constexpr std::string_view kUnits[] = {"ns", "µs", "ms", "s"};
  double scaled = static_cast<double>(nanoseconds);
  std::size_t i = 0;
  for (; scaled >= 1000 && i + 1 < std::size(kUnits); ++i) scaled /= 1000;
  return fmt::format("{:g} {}", scaled, kUnits[i]);
}

std::string quantity(std::optional<double> value, std::string_view unit) {
  if (!value) return "–";
  const ShownUnit shown = shown_unit(*value, unit);
  const double scaled = *value / shown.factor;
  const bool countable = shown.name == "ns" || shown.name == "B" || shown.name.empty();
  // A clock's ticks are whole, and so is a time of few of them.
  const bool whole = countable && scaled == std::floor(scaled) && std::abs(scaled) < 1e12;
  const std::string number = whole ? fmt::format("{:.0f}", scaled) : three_digits(scaled);
  return shown.name.empty() ? number : fmt::format("{} {}", number, shown.name);
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (std::abs(percent) >= 1e12) return fmt::format("{:.2e} %", percent);
  return std::abs(percent) < 99.5 && std::abs(percent) >= 0.0001 ? fmt::format("{:.2g} %", percent)
                                                                 : fmt::format("{:.0f} %", percent);
}

std::string times_text(double ratio) {
  if (ratio < 0.001) return "under 0.001";
  if (ratio > 1000) return "over 1000";
  int decimals = ratio < 0.0995 ? 3 : ratio < 1.995 ? 2 : ratio < 9.95 ? 1 : 0;
  // On which side of what decides a verdict it lies, it still says when rounded.
  constexpr int kMostDecimals = 5;
  for (const double mark : {1.0, kLeastDifference, 1 / kLeastDifference, kTooWide, 1 / kTooWide}) {
    while (ratio != mark && decimals < kMostDecimals &&
           fmt::format("{:.{}f}", ratio, decimals) == fmt::format("{:.{}f}", mark, decimals))
      ++decimals;
  }
  return fmt::format("{:.{}f}", ratio, decimals);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e24) return fmt::format("{:.2e} B", bytes);
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  for (; bytes >= 1024 && i + 1 < std::size(kUnits); ++i) bytes /= 1024;
  return fmt::format(
      "{:.{}f} {}", bytes, bytes >= 10 || bytes == std::floor(bytes) ? 0 : 1, kUnits[i]);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

std::vector<NearName> by_nearness(std::string_view asked, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 300;  // the time to compare is a product of two lengths
  const auto small = [](std::string_view text) {
    std::string out(text.substr(0, kLongest));
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
  };
  const std::string word = small(asked);
  std::vector<NearName> near;
  for (const std::string& name : names) {
    const std::string other = small(name);
    near.push_back({other.starts_with(word) ? 0 : edit_distance(word, other), name});
  }
  std::ranges::stable_sort(near, {}, &NearName::far);
  return near;
}

std::string did_you_mean(std::string_view asked, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3, kShortest = 2;
  if (asked.size() < kShortest) return "";
  const std::size_t farthest = std::max<std::size_t>(1, asked.size() / 3);
  std::vector<std::string> meant;
  const std::vector<NearName> near = by_nearness(asked, names);
  for (const NearName& one : near) {
    if (one.far > farthest || one.far > near.front().far || meant.size() == kMost) break;
    meant.push_back(fmt::format("'{}'", one.name));
  }
  return meant.empty() ? "" : fmt::format(": did you mean {}?", list_text(meant, "or"));
}

namespace {

constexpr std::size_t kBetween = 2;  // columns

/// A row's cells from `first` on, each as wide as its column.
std::string aligned(const std::vector<std::string>& row,
                    const std::vector<std::size_t>& widths,
                    std::size_t first) {
  std::string line;
  for (std::size_t i = first; i < row.size(); ++i) {
    const std::string padding(widths[i] - width_of(row[i]), ' ');
    if (i > 0) line += std::string(kBetween, ' ');
    line += i == 0 ? row[i] + padding : padding + row[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// A line for each cell that has something, behind its heading.
std::string listed(const std::vector<std::string>& headings, const std::vector<std::string>& row) {
  std::string text;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (!row[i].empty())
      text += fmt::format("{}{}: {}\n", std::string(kBetween, ' '), headings.at(i), row[i]);
  }
  return text;
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows,
                  std::optional<std::size_t> columns) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::size_t all = 0;
  for (const std::size_t width : widths) all += width + kBetween;
  const bool fits = !columns || widths.empty() || all - kBetween <= *columns;
  const bool fits_below = fits || all - widths[0] - kBetween <= *columns;
  std::string text;
  for (const auto& row : rows) {
    if (fits || row.size() < 2) {
      text += aligned(row, widths, 0);
    } else if (fits_below) {
      text += row[0] + "\n" + aligned(row, widths, 1);
    } else if (&row != &rows.front()) {
      text += row[0] + "\n" + listed(rows.front(), row);
    }
  }
  return text;
}

std::string recorded_uuid_text(std::string_view bytes) {
  const bool known =
      bytes.size() == kUuidBytes && bytes.find_first_not_of('\0') != std::string_view::npos;
  return known ? uuid_text(std::span<const char, kUuidBytes>(bytes.data(), kUuidBytes)) : "";
}

std::string uuid_text(std::span<const char, kUuidBytes> bytes) {
  std::string text;
  for (std::size_t i = 0; i < kUuidBytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return counted(fmt::format("{}", number), noun);
}

std::string counted(std::string_view number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == "1" ? "" : "s");
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

std::optional<std::string_view> header_field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  }
  return std::nullopt;
}

std::string list_text(const std::vector<std::string>& words, std::string_view last) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    list += words[i];
  }
  return list;
}

std::string list_text(const std::set<std::string>& words, std::size_t most) {
  std::vector<std::string> named;
  for (const std::string& word : words) {
    if (named.size() < most) named.push_back(word);
  }
  if (words.size() > most) named.push_back(fmt::format("{} more", words.size() - most));
  return list_text(named);
}

std::optional<std::uint64_t> bytes_of_text(std::string_view text) {
  struct Unit {
    std::string_view name;
    unsigned log2;
  };
  static constexpr Unit kUnits[] = {
      {"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  const auto number = take_number<std::uint64_t>(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.name != text) continue;
    if (*number > std::numeric_limits<std::uint64_t>::max() >> unit.log2) return std::nullopt;
    return *number << unit.log2;
  }
  return std::nullopt;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > indent && column + 1 + length > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

std::optional<std::size_t> terminal_columns() {
  constexpr std::size_t kMost = 10'000;
  if (const char* const said = std::getenv("COLUMNS")) {
    const auto columns = number_of_text<std::size_t>(said);
    if (columns && *columns > 0 && *columns <= kMost) return columns;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::size_t text_columns() {
  constexpr std::size_t kLeast = 40, kMost = 100;
  return std::clamp(terminal_columns().value_or(kMost), kLeast, kMost);
}

}  // namespace launchgap
