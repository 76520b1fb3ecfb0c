#include "harness/import/published_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "harness/core/case_name.h"
#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/convolution.h"
#include "harness/device/shape_text.h"

namespace launchgap::recording {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlanks = " \t\r";
/// Beyond these a time or a rate computed of it is no number any more.
constexpr double kLeastValue = 1e-30, kMostValue = 1e30;
constexpr std::size_t kLongestLine = 1 << 16, kLongestCell = 300, kLongestSource = 2000;  // bytes
constexpr std::size_t kShown = 100;  // bytes of a cell in a message

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// "cuBLAS 7.5", whether the version has a cell of its own or stands behind the name.
std::string software_text(std::string_view library, std::string_view version) {
  std::string text(library);
  const bool has_it = text.ends_with(fmt::format(" {}", version));
  if (!version.empty() && !has_it) text += fmt::format("{}{}", text.empty() ? "" : " ", version);
  return text;
}

/// "matmul/shapes".
bool is_benchmark_name(std::string_view text) {
  const auto is_word = [](std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
  };
  const std::size_t slash = text.find('/');
  return slash != text.npos && is_word(text.substr(0, slash)) && is_word(text.substr(slash + 1));
}

std::string_view family_of(std::string_view benchmark) {
  return benchmark.substr(0, benchmark.find('/'));
}

// The columns, in the order of kPublishedColumns and kOptionalPublishedColumns.
enum PublishedColumn : std::size_t {
  kGpu,
  kBenchmark,
  kCase,
  kMetric,
  kUnit,
  kValue,
  kSource,
  kLicence,
  kLibrary,
  kLibraryVersion,
  kCuda,
  kDriver,
  kAlgorithm,
  kColumns
};
constexpr std::size_t kNeeded = std::size(kPublishedColumns);
static_assert(kNeeded + std::size(kOptionalPublishedColumns) == kColumns);

std::string_view column_name(std::size_t column) {
  return column < kNeeded ? kPublishedColumns[column] : kOptionalPublishedColumns[column - kNeeded];
}

/// What of a cell cannot be shown as it is; most cells are letters, and quickly found to be.
bool is_plain(std::string_view cell) {
  const bool ascii =
      std::ranges::all_of(cell, [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
  return ascii || printable(cell, 8 * cell.size()) == cell;
}

}  // namespace

/// The rows of a table one after the other, their cells without the blanks around them.
class PublishedTables::Row {
 public:
  Row(const std::filesystem::path& path, std::uint32_t file)
      : file(file), name_(printable(path.string())), input_(path) {
    std::error_code failed;
    if (std::filesystem::file_size(path, failed) > kLongestSheet && !failed)
      throw Error("{} is longer than {} bytes", name_, kLongestSheet);
    if (!read_line()) throw Error("{}: it is empty", name_);
    places_.fill(kAbsent);
    for (std::size_t place = 0; place < cells_.size(); ++place) place_column(place);
    for (std::size_t column = 0; column < kNeeded; ++column) {
      if (places_[column] == kAbsent)
        throw Error("{} has no column '{}'", name_, column_name(column));
    }
    width_ = cells_.size();
  }

  /// Whether there was one more.
  bool next() {
    if (!read_line()) return false;
    if (cells_.size() != width_)
      throw Error(
          "{}: {} under {}", where(), counted(cells_.size(), "cell"), counted(width_, "column"));
    for (std::size_t column = 0; column < kColumns; ++column) check_cell(column);
    return true;
  }

  /// Empty where the table does not have it.
  std::string_view of(std::size_t column) const {
    return places_[column] == kAbsent ? std::string_view()
                                      : without_blanks(cells_[places_[column]]);
  }
  /// Refuses an empty one.
  std::string_view needed(std::size_t column) const {
    const std::string_view text = of(column);
    if (text.empty()) refuse(column, "it is empty");
    return text;
  }

  std::string where() const { return fmt::format("{}, line {}", name_, line); }
  [[noreturn]] void refuse(std::size_t column, const std::string& why) const {
    throw Error("{}, column {}: {}", where(), column_name(column), why);
  }
  const std::string& name() const { return name_; }

  std::uint32_t file;      // of the tables
  std::uint32_t line = 0;  // the header's is 1

 private:
  bool read_line() {
    std::string_view text;
    bool torn = false;
    ++line;
    try {
      if (!input_.next_line(text, torn, kLongestLine)) return false;
    } catch (const Error& error) {
      const std::string why = error.what();
      throw Error(why.starts_with("it is") ? fmt::format("{}: {}", where(), why) : why);
    }
    if (torn) throw Error("{}: its last line has no end; the file may be cut off", name_);
    if (line == 1 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    if (valid_utf8(text) != text.size()) throw Error("{}: not UTF-8; save it as UTF-8", where());
    const std::string wrong = read_csv_record(text, cells_);
    if (!wrong.empty()) throw Error("{}: {}", where(), wrong);
    return true;
  }

  void place_column(std::size_t place) {
    const std::string_view name = without_blanks(cells_[place]);
    for (std::size_t column = 0; column < kColumns; ++column) {
      if (name != column_name(column)) continue;
      if (places_[column] != kAbsent) throw Error("{}: column {} is there twice", where(), name);
      places_[column] = place;
      return;
    }
    throw Error("{}, column {}: a table of published values has no such column",
                where(),
                printable(name, kShown));
  }

  void check_cell(std::size_t column) const {
    const std::string_view text = of(column);
    if (!is_plain(text))
      refuse(column, fmt::format("'{}' has a control character in it", printable(text, kShown)));
    const std::size_t longest =
        column == kSource || column == kLicence ? kLongestSource : kLongestCell;
    if (text.size() > longest)
      refuse(column, fmt::format("it has {} bytes, and may have {}", text.size(), longest));
  }

  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::string name_;
  InputFile input_;
  std::vector<std::string> cells_;
  std::array<std::size_t, kColumns> places_;
  std::size_t width_ = 0;
};

namespace {

double value_of(const auto& row) {
  const std::string_view text = row.needed(kValue);
  const std::optional<double> value = number_of_text<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0)
    row.refuse(kValue, fmt::format("'{}' is no number above 0", printable(text, kShown)));
  if (*value < kLeastValue || *value > kMostValue)
    row.refuse(
        kValue,
        fmt::format(
            "'{}' is not from {:g} to {:g}", printable(text, kShown), kLeastValue, kMostValue));
  return *value;
}

const Metric* metric_of(const auto& row) {
  const std::string_view key = row.needed(kMetric);
  const Metric* const known = find_metric(key);
  if (!known) {
    std::vector<std::string> names;
    for (const Metric& metric : all_metrics()) names.emplace_back(metric.key);
    row.refuse(
        kMetric,
        fmt::format("there is no metric '{}'{}", printable(key, kShown), did_you_mean(key, names)));
  }
  if (const std::string_view unit = row.of(kUnit); known->unit != unit)
    row.refuse(
        kUnit,
        fmt::format("{} is in {}, and not in '{}'", key, known->unit, printable(unit, kShown)));
  return known;
}

/// As the method of a summary names it.
std::string_view algorithm_cell(const auto& row) {
  const std::string_view text = row.of(kAlgorithm);
  const auto known = algorithm_names();
  if (!text.empty() && std::ranges::find(known, text) == known.end())
    row.refuse(kAlgorithm,
               fmt::format("there is no algorithm '{}'{}",
                           printable(text, kShown),
                           did_you_mean(text, {known.begin(), known.end()})));
  return text;
}

/// "matmul/shapes/shape:…"; refuses what is no case.
std::string case_text(const auto& row) {
  std::string text = fmt::format("{}/{}", row.of(kBenchmark), row.needed(kCase));
  try {
    const CaseName name = CaseName::parse(text);
    if (name.benchmark != row.of(kBenchmark))
      throw Error("it begins with what is no axis: axis:value/axis:value");
    for (const auto& param : name.params) {
      const auto same = [&](const auto& other) { return other.first == param.first; };
      if (std::ranges::count_if(name.params, same) > 1)
        throw Error("axis '{}' is there twice", param.first);
    }
  } catch (const Error& error) {
    row.refuse(kCase, error.what());
  }
  return text;
}

}  // namespace

bool is_published_sheet(const std::filesystem::path& file) {
  try {
    std::string_view line;
    bool torn = false;
    InputFile input(file);
    if (!input.next_line(line, torn, kLongestLine)) return false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    std::vector<std::string> cells;
    if (!read_csv_record(line, cells).empty()) return false;
    const std::set<std::string_view> names = [&] {
      std::set<std::string_view> trimmed;
      for (const std::string& cell : cells) trimmed.insert(without_blanks(cell));
      return trimmed;
    }();
    // One that lacks another is told which.
    return std::ranges::all_of(
        std::array{kGpu, kBenchmark, kCase, kMetric},
        [&](PublishedColumn column) { return names.contains(column_name(column)); });
  } catch (const Error&) {  // whoever reads it says what is wrong with it
    return false;
  }
}

PublishedTables::PublishedTables(const std::vector<std::string>& benchmarks, std::size_t most)
    : most_(most), benchmarks_(benchmarks) {}

void PublishedTables::read(const std::filesystem::path& file) {
  files_.push_back(printable(file.string()));
  Row row(file, static_cast<std::uint32_t>(files_.size() - 1));
  bool any = false;
  for (; row.next(); any = true) add(row);
  if (!any) throw Error("{}: no value is in it", row.name());
}

void PublishedTables::add(const Row& row) {
  PublishedGpu gpu{
      std::string(row.needed(kGpu)), std::string(row.of(kCuda)), std::string(row.of(kDriver))};
  const std::string benchmark(row.needed(kBenchmark));
  check_benchmark(row, benchmark);
  const PublishedOrigin& origin =
      *origins_
           .insert({std::string(row.needed(kSource)),
                    std::string(row.needed(kLicence)),
                    software_text(row.of(kLibrary), row.of(kLibraryVersion)),
                    std::string(algorithm_cell(row))})
           .first;
  PublishedCases& cases = gpus_[std::move(gpu)][std::string(family_of(benchmark))];
  const std::string name = case_text(row);
  PublishedCase& own = cases[name];
  const SheetValue value{metric_of(row), value_of(row), row.file, row.line};
  if (own.values.empty()) {
    own.origin = &origin;
  } else {
    check_agreement(row, own, origin);
  }
  const auto same = std::ranges::find(own.values, value.metric, &SheetValue::metric);
  if (same != own.values.end())
    row.refuse(kCase,
               fmt::format("a value of it is in {} already; a file has one library of a GPU",
                           place_of(row, *same)));
  check_rate(row, own, value, name);
  if (++values_ > most_)
    row.refuse(kValue,
               fmt::format("these are more than {} values: make several sessions of them", most_));
  own.values.push_back(value);
}

std::string PublishedTables::place_of(const Row& row, const SheetValue& value) const {
  return value.file == row.file ? fmt::format("line {}", value.line)
                                : fmt::format("{}, line {},", files_.at(value.file), value.line);
}

void PublishedTables::check_agreement(const Row& row,
                                      const PublishedCase& own,
                                      const PublishedOrigin& origin) const {
  if (own.origin == &origin) return;
  const auto differ = [&](std::size_t column, const std::string& here, const std::string& there) {
    if (here == there) return;
    row.refuse(column,
               fmt::format("'{}', and '{}' of the same case in {}; a case has one",
                           printable(here, kShown),
                           printable(there, kShown),
                           place_of(row, own.values.front())));
  };
  differ(kSource, origin.source, own.origin->source);
  differ(kLicence, origin.licence, own.origin->licence);
  differ(kLibrary, origin.software, own.origin->software);
  differ(kAlgorithm, origin.algorithm, own.origin->algorithm);
}

void PublishedTables::check_rate(const Row& row,
                                 const PublishedCase& own,
                                 const SheetValue& value,
                                 const std::string& name) const {
  constexpr double kMostApart = 2;  // beyond what sheets round; a wrong unit is further off
  constexpr double kTeraTimesNano = 1e3;
  const bool rate = value.metric->key == "tflops";
  if (!rate && value.metric->key != "device_ns") return;
  const auto other = std::ranges::find_if(own.values, [&](const SheetValue& known) {
    return known.metric->key == (rate ? "device_ns" : "tflops");
  });
  const auto operations =
      other == own.values.end() ? std::nullopt : operations_of(CaseName::parse(name));
  if (!operations) return;
  const double counted = value.value * other->value * kTeraTimesNano;
  if (counted <= kMostApart * *operations && *operations <= kMostApart * counted) return;
  row.refuse(kValue,
             fmt::format("with the {} in {} it makes {:.3g} operations, and the case has {:.3g}",
                         other->metric->key,
                         place_of(row, *other),
                         counted,
                         *operations));
}

void PublishedTables::check_benchmark(const Row& row, const std::string& benchmark) {
  if (checked_.contains(benchmark)) return;
  if (!is_benchmark_name(benchmark))
    row.refuse(kBenchmark,
               fmt::format("'{}' is none, as matmul/shapes is: `launchgap list benchmarks`",
                           printable(benchmark, kShown)));
  const auto of_family = [&](const std::string& known) {
    return family_of(known) == family_of(benchmark);
  };
  const bool own_family = std::ranges::any_of(benchmarks_, of_family);
  if (own_family && std::ranges::find(benchmarks_, benchmark) == benchmarks_.end())
    row.refuse(kBenchmark,
               fmt::format("launchgap has no '{}'{}; what it does not measure is of a family that "
                           "it does not have, such as others/{}",
                           printable(benchmark, kShown),
                           did_you_mean(benchmark, benchmarks_),
                           benchmark.substr(benchmark.find('/') + 1)));
  checked_.insert(benchmark);
}

}  // namespace launchgap::recording
