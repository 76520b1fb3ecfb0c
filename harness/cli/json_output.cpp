#include "harness/cli/json_output.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {
namespace {

constexpr const char* kStandardOutput = "-";

/// Those that a reader of the page meets first.
constexpr std::string_view kTables[] =
    {"devices", "headlines", "answers", "findings", "outlier_devices", "recordings"};

Json cell_as_json(const std::string& cell, CellKind kind) {
  if (cell.empty()) return nullptr;
  if (kind == CellKind::flag) return cell == "true";
  if (kind == CellKind::text) return cell;
  if (kind == CellKind::count) return std::strtoll(cell.c_str(), nullptr, 10);
  return std::strtod(cell.c_str(), nullptr);
}

Json rows_of(const Table& table, const TableInputs& inputs) {
  Json rows = Json::array();
  table.fill(inputs, [&](const std::vector<std::string>& cells) {
    Json& row = rows.emplace_back(Json::object());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const ColumnInfo& column = table.columns[i + 1];  // the first is the session's id
      row[std::string(column.key)] = cell_as_json(cells[i], column.kind);
    }
  });
  return rows;
}

void add_tables(Json& json, std::span<const std::string_view> names, const TableInputs& inputs) {
  for (const Table& table : all_tables()) {
    const std::string_view name = table.name.substr(0, table.name.find('.'));
    if (std::ranges::find(names, name) != names.end())
      json[std::string(name)] = rows_of(table, inputs);
  }
}

}  // namespace

JsonOutput JsonOutput::to_standard_output() {
  JsonOutput output;
  output.place_ = kStandardOutput;
  return output;
}

void JsonOutput::add_option(CLI::App& command, const std::string& what) {
  command.add_option("--json", place_, what + ", as JSON: to this file, or to standard output (-)")
      ->expected(0, 1)
      ->default_str(kStandardOutput)
      ->type_name("[FILE]");
}

std::string JsonOutput::file() const {
  return place_ == kStandardOutput ? "" : place_;
}

void JsonOutput::begin() const {
  if (!asked()) return;
  if (place_ == kStandardOutput) {
    answer_beside_document();
  } else {
    check_output_place(place_);
  }
}

void JsonOutput::write(const Json& json) const {
  if (!asked()) return;
  // ASCII alone: what a device calls itself is data to a program, and nothing to a terminal.
  const std::string text = json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (place_ == kStandardOutput) {
    answer_document(text);
  } else {
    write_file(place_, text);
  }
}

std::string JsonOutput::take_back() {
  if (file().empty() || place_.find_first_of("./") != std::string::npos) return "";
  return std::exchange(place_, kStandardOutput);
}

Json session_as_json(const Summarised& summarised, const std::filesystem::path& page) {
  Json json = {{"session_id", summarised.session.id},
               {"folder", summarised.session.folder.string()},
               {"page", page.string()},
               {"problems", summarised.session.problems}};
  add_tables(json, kTables, summarised.table_inputs());
  return json;
}

Json fleet_as_json(const FleetTables& tables, const std::filesystem::path& page) {
  const TableInputs inputs = tables.inputs();
  Json json = {{"session_id", inputs.session.id},
               {"folder", inputs.session.folder.string()},
               {"page", page.string()}};
  constexpr std::string_view kFleetTables[] = {
      "findings", "missing", "fleet_devices", "fleet_metrics", "fleet_scores", "fleet_failures"};
  add_tables(json, kFleetTables, inputs);
  return json;
}

Json gap_as_json(const GapRows& gap) {
  const SessionData none;
  const std::vector<SummaryRow> no_rows;
  const SlowSamples no_samples(none, no_rows);
  Json json = Json::object();
  for (const char* name : {"answers", "values", "classes", "limits", "tuned"}) {
    const auto table =
        std::ranges::find(all_tables(), fmt::format("gap_{}.csv", name), &Table::name);
    json[name] = rows_of(*table, {none, no_rows, no_samples, nullptr, &no_rows, &gap});
  }
  return json;
}

}  // namespace launchgap::cli
