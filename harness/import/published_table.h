// Tables of what others have published, as they are read: a value per GPU, case and metric.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/metric.h"
#include "harness/import/imported_session.h"
#include "harness/record/session_record.h"

namespace launchgap::recording {

/// What a table of published values must have, and what it may have.
inline constexpr std::string_view kPublishedColumns[] =
    {"gpu", "benchmark", "case", "metric", "unit", "value", "source", "licence"};
inline constexpr std::string_view kOptionalPublishedColumns[] = {"library",
                                                                 "library_version",
                                                                 "cuda",
                                                                 "driver",
                                                                 "algorithm"};

inline constexpr std::size_t kMostPublishedValues = 2'000'000;        // of a session
inline constexpr std::size_t kLongestSheet = std::size_t{512} << 20;  // bytes

/// A GPU with the software that it was measured with; what is not known is empty.
struct PublishedGpu {
  std::string name, cuda, driver;
  auto operator<=>(const PublishedGpu&) const = default;
};

/// What a cell says.
struct SheetValue {
  const Metric* metric;
  double value;
  std::uint32_t file, line;
};

struct PublishedCase {
  std::vector<SheetValue> values;
  const PublishedOrigin* origin = nullptr;
};

/// The cases of a family, by their text.
using PublishedCases = std::map<std::string, PublishedCase, std::less<>>;

/// Whether a file is a table of published values: by its first line.
bool is_published_sheet(const std::filesystem::path& file);

class PublishedTables {
 public:
  /// `benchmarks` are those of launchgap: a row may name one of them, or any of a family that
  /// launchgap does not have. More values than `most` are refused.
  explicit PublishedTables(const std::vector<std::string>& benchmarks,
                           std::size_t most = kMostPublishedValues);

  /// Adds a table, line by line. Throws Error, which names file, line and column.
  void read(const std::filesystem::path& file);

  /// By GPU and family.
  const std::map<PublishedGpu, std::map<std::string, PublishedCases>>& gpus() const {
    return gpus_;
  }

 private:
  class Row;
  void add(const Row& row);
  void check_benchmark(const Row& row, const std::string& benchmark);
  void check_agreement(const Row& row,
                       const PublishedCase& own,
                       const PublishedOrigin& origin) const;
  /// Of one case a rate and a time must say the same.
  void check_rate(const Row& row,
                  const PublishedCase& own,
                  const SheetValue& value,
                  const std::string& name) const;
  std::string place_of(const Row& row, const SheetValue& value) const;

  std::size_t values_ = 0, most_;
  std::vector<std::string> benchmarks_;
  std::vector<std::string> files_;  // as messages name them
  std::map<PublishedGpu, std::map<std::string, PublishedCases>> gpus_;
  std::set<PublishedOrigin> origins_;
  std::set<std::string, std::less<>> checked_;  // benchmarks that a row may name
};

// --- A session of such tables: nothing in it was measured or recorded here, and it says so ---

/// Whether all files of a request are tables of published values. Throws UsageError where some are
/// and others are not.
bool are_published_sheets(const ImportRequest& request);

/// Makes a session of such tables: a device for each GPU with its CUDA and driver, and a file of
/// its values (harness/summary/published.h reads it). Returns what a reader should know, one
/// line each.
///
/// Throws UsageError, which names file, line and column, for what is no table, not UTF-8, longer
/// than kLongestSheet, a cell with a control character or too long, a value that is no number above
/// 0, a metric that launchgap does not know or has in another unit, a benchmark, a case or an
/// algorithm that is none, a value that is there twice, or a case whose rows differ in source,
/// licence, library or algorithm. Nothing is left then.
std::vector<std::string> import_published(const ImportRequest& request);

}  // namespace launchgap::recording
