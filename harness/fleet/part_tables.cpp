#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/number_text.h"
#include "harness/core/text.h"
#include "harness/fleet/fleet.h"
#include "harness/stats/stats.h"
#include "harness/summary/summary.h"

namespace launchgap::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestTable = std::size_t{1} << 30;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Throws Error for text that is no number; an empty cell is none.
double number(const std::string& cell, const CsvReader& reader) {
  if (cell.empty()) return kNone;
  const std::optional<double> value = number_of_text<double>(cell);
  if (!value) throw Error("{}: '{}' is no number", reader.where(), cell);
  return *value;
}

bool is_level(double value) {
  return std::isnormal(value) && value > 0;
}

/// Counts those that are no level.
std::vector<double> levels(const std::string& cell, const CsvReader& reader, std::size_t& others) {
  std::vector<double> values;
  for (const std::string_view word : parts_of(cell, " ")) {
    const double value = number(std::string(word), reader);
    if (is_level(value)) {
      values.push_back(value);
    } else {
      ++others;
    }
  }
  return values;
}

/// Throws Error for a table that is torn, or lacks a column.
PartTable read_table(const fs::path& path) {
  const std::string text = InputFile(path).text(kLongestTable);
  if (!text.ends_with('\n')) throw Error("{} ends in the middle of a row", path.string());
  CsvReader reader(text, path.string());
  const std::size_t device = reader.column("device_id"), arm = reader.column("arm"),
                    process_config = reader.column("process_config"),
                    benchmark = reader.column("benchmark"), params = reader.column("params"),
                    metric = reader.column("metric"), status = reader.column("status"),
                    reason = reader.column("reason"), n = reader.column("n"),
                    p50 = reader.column("p50"), mean = reader.column("mean");
  // Tables of before have neither.
  const auto column = [&](std::string_view name) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < reader.header().size(); ++i) {
      if (reader.header()[i] == name) return i;
    }
    return std::nullopt;
  };
  const auto medians = column("run_medians"), impossible = column("impossible");
  PartTable table;
  std::size_t others = 0;
  while (reader.next()) {
    const std::vector<std::string>& cells = reader.cells();
    if (impossible && cells[*impossible] == "true") continue;
    PartRow& row = table.rows.emplace_back();
    row.device = cells[device];
    row.arm = cells[arm];
    row.process_config = cells[process_config];
    row.case_name = cells[benchmark];
    if (!cells[params].empty()) row.case_name += "/" + cells[params];
    row.metric = cells[metric];
    row.status = parse_status(cells[status]);
    row.reason = cells[reason];
    row.p50 = number(cells[p50], reader);
    const double time = number(cells[n], reader) * number(cells[mean], reader);
    row.time = is_level(time) ? time : 0;
    if (medians) row.run_medians = levels(cells[*medians], reader, others);
    // Of a table of before it is one value, which tells nothing of runs.
    if (!medians && is_level(row.p50)) row.run_medians = {row.p50};
    if (!is_level(row.p50)) row.p50 = stats::median(row.run_medians).value_or(kNone);
  }
  if (others > 0)
    table.problem = fmt::format("{}: {} of runs {} not positive, and do not count",
                                path.string(),
                                counted(others, "median"),
                                others == 1 ? "is" : "are");
  return table;
}

std::vector<PartRow> rows_of_records(const fs::path& folder, std::vector<std::string>& problems) {
  const SessionData session = read_session(folder);
  problems = session.problems;
  std::vector<PartRow> rows;
  for (const SummaryRow& from : summarise(session)) {
    if (from.impossible) continue;
    PartRow& row = rows.emplace_back();
    row.device = from.key.device;
    row.arm = from.key.arm;
    row.process_config = from.key.process_config.text();
    row.case_name = from.key.name.text();
    row.metric = from.metric;
    row.status = from.status;
    row.reason = from.reason;
    row.p50 = from.p50.value_or(kNone);
    const double time = static_cast<double>(from.n) * from.mean.value_or(kNone);
    row.time = is_level(time) ? time : 0;
    for (const double median : from.run_medians) {
      if (is_level(median)) row.run_medians.push_back(median);
    }
  }
  return rows;
}

}  // namespace

PartTable read_part_table(const fs::path& session, bool ended) {
  PartTable table;
  std::error_code failed;
  const fs::path path = session / "summary.csv";
  // What is there of a session that still runs is of when somebody looked at it.
  if (ended && fs::symlink_status(path, failed).type() != fs::file_type::not_found) {
    try {
      return read_table(path);
    } catch (const Error& error) {
      table.problem = fmt::format("{}; its records were read", error.what());
    }
  }
  try {
    std::vector<std::string> problems;
    table.rows = rows_of_records(session, problems);
    table.from_records = true;
    for (const std::string& problem : problems)
      table.problem += (table.problem.empty() ? "" : "; ") + problem;
  } catch (const Error& error) {
    table.problem = error.what();
  }
  return table;
}

}  // namespace launchgap::fleet
