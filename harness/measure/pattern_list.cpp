#include "harness/measure/pattern_list.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"

namespace launchgap {
namespace {

constexpr const char* kTable = "patterns.csv";

std::optional<std::vector<Pattern>>& users_patterns() {
  static std::optional<std::vector<Pattern>> patterns;
  return patterns;
}

std::vector<Pattern> read_shipped() {
  const CsvTable table = CsvTable::parse(embedded_table(kTable), kTable);
  std::vector<Pattern> patterns;
  for (std::size_t row = 0; row < table.size(); ++row) {
    Pattern& own = patterns.emplace_back();
    own.origin.name = table.at(row, "name");
    own.origin.gpu = table.at(row, "gpu");
    own.origin.source = table.at(row, "source");
    own.origin.recorded_ns = static_cast<std::int64_t>(table.number(row, "recorded_ns"));
    own.origin.recorded_host_ns = static_cast<std::int64_t>(table.number(row, "recorded_host_ns"));
    own.origin.other_calls_ns = static_cast<std::int64_t>(table.number(row, "other_calls_ns"));
    own.origin.incomplete = table.at(row, "incomplete");
    if (const std::string& remarks = table.at(row, "remarks"); !remarks.empty())
      own.origin.remarks.push_back(remarks);
    const std::string file = "pattern_" + own.origin.name + ".csv";
    own.operations = parse_pattern(embedded_table(file), file);
  }
  return patterns;
}

}  // namespace

const std::vector<Pattern>& shipped_patterns() {
  static const std::vector<Pattern> patterns = read_shipped();
  return patterns;
}

void use_patterns(std::vector<Pattern> patterns) {
  std::set<std::string_view> names;
  for (const Pattern& pattern : patterns) {
    if (!names.insert(pattern.origin.name).second)
      throw UsageError("--pattern: '{}' is there twice", pattern.origin.name);
  }
  users_patterns() = std::move(patterns);
}

bool has_users_patterns() {
  return users_patterns().has_value();
}

const std::vector<Pattern>& patterns_in_use() {
  return users_patterns() ? *users_patterns() : shipped_patterns();
}

const Pattern& pattern_named(std::string_view name) {
  const std::vector<Pattern>& patterns = patterns_in_use();
  const auto found =
      std::ranges::find(patterns, name, [](const Pattern& pattern) -> const std::string& {
        return pattern.origin.name;
      });
  if (found == patterns.end()) throw Unsupported("there is no pattern '{}' here", name);
  return *found;
}

void check_patterns_fit(const std::vector<DeviceFacts>& devices) {
  if (!has_users_patterns()) return;
  for (const DeviceFacts& device : devices) {
    if (!device.usable || !device.memory_bytes) continue;
    for (const Pattern& pattern : patterns_in_use()) {
      const std::uint64_t needed = totals_of(pattern).device_bytes();
      if (needed <= *device.memory_bytes) continue;
      throw UsageError(
          "--pattern: {} needs {} of memory, and {} has {}: choose others with --devices",
          pattern.origin.name,
          bytes_text(static_cast<double>(needed)),
          device.name,
          bytes_text(static_cast<double>(*device.memory_bytes)));
    }
  }
}

}  // namespace launchgap
