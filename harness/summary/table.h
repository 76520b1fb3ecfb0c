// A table that launchgap writes, as data: what its rows are, and of each column the key, what kind
// of cell, the unit, the meaning and how a row fills it. CSV, page and docs come from it.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/core/csv_writer.h"
#include "harness/summary/fleet_rows.h"
#include "harness/summary/gap_rows.h"
#include "harness/summary/night_rows.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"
#include "harness/summary/timelines.h"

namespace launchgap {

enum class CellKind {
  text,
  number,
  count,  // a whole number
  flag,   // "true" or "false"
};
std::string_view name_of(CellKind kind);

/// What a reader of a table must know of a column.
struct ColumnInfo {
  std::string_view key;
  CellKind kind = CellKind::text;
  std::string_view unit;     // of a number; kUnitOfMetric: that of the row's metric
  std::string_view heading;  // on the page
  std::string_view meaning;
};
inline constexpr std::string_view kUnitOfMetric = "unit of the metric";
/// The unit of a share of 1, which the page shows in percent.
inline constexpr std::string_view kShare = "share";

/// The unit that the key of a column ends with: "ns" of "first_call_ns"; empty where it names none.
constexpr std::string_view unit_of_key(std::string_view key) {
  if (key.ends_with("_per_ns")) return {};
  if (key.ends_with("_ns")) return "ns";
  if (key.ends_with("bytes")) return "B";
  if (key.ends_with("_mhz")) return "MHz";
  return key.ends_with("_share") ? kShare : std::string_view();
}

/// What a key means that many tables have. Throws std::invalid_argument for any other.
constexpr std::string_view meaning_of_key(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kAll[] = {
      {"node", "The machine's name."},
      {"device_id", "The device's UUID."},
      {"device_name", "The device's name, as it gives it."},
      {"backend", "cuda: a GPU through the CUDA driver; host: the CPU."},
      {"compute_capability", "The GPU's generation, as CUDA numbers it."},
      {"attempt",
       "Which process of its run: 0, and one more each time one crashed, hung or lost its device."},
      {"simulated", "Whether it ran on the fake CUDA libraries of the tests."},
      {"arm",
       "plain: nothing traces the process, these numbers are the headline; traced: its activity is "
       "recorded, by CUPTI or the host device itself; recorded: somebody else recorded it; "
       "published: others have published it."},
      {"process_config", "The family of benchmarks and the settings of the whole process."},
      {"case", "The benchmark and its parameters."},
      {"metric", "What was measured."},
      {"unit", "The metric's unit."},
      {"replicate", "The same plan again, in fresh processes: from 0."}};
  for (const auto& [known, what] : kAll) {
    if (known == key) return what;
  }
  throw std::invalid_argument("a column has no meaning: " + std::string(key));
}

namespace table_detail {

inline std::string text_of(std::string_view text) {
  return std::string(text);
}
template <std::same_as<bool> Bool>
std::string text_of(Bool value) {
  return cell(value);
}
template <std::floating_point Number>
std::string text_of(Number value) {
  return cell(static_cast<double>(value));
}
template <std::integral Integer>
requires(!std::same_as<Integer, bool>) std::string text_of(Integer value) {
  return std::to_string(value);
}
template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : std::string();
}

template <class Value>
struct Plain {
  using type = Value;
};
template <class Value>
struct Plain<std::optional<Value>> {
  using type = Value;
};

template <class Value>
constexpr CellKind kind_of() {
  using Type = typename Plain<std::remove_cvref_t<Value>>::type;
  if constexpr (std::same_as<Type, bool>) return CellKind::flag;
  if constexpr (std::integral<Type>) return CellKind::count;
  if constexpr (std::floating_point<Type>) return CellKind::number;
  return CellKind::text;
}

}  // namespace table_detail

/// A column, and how a row fills it: `get` is a function of the row, or a pointer to a member. What
/// it returns tells the kind; an absent optional is an empty cell. `unit` is needed only where the
/// key does not end with it.
template <class Row>
struct TableColumn {
  template <class Get>
  TableColumn(std::string_view key,
              std::string_view meaning,
              Get get,
              std::string_view unit = {},
              std::string_view heading = {})
      : info{key,
             table_detail::kind_of<std::invoke_result_t<Get, const Row&>>(),
             unit.empty() ? unit_of_key(key) : unit,
             heading.empty() ? key : heading,
             meaning},
        cell([get](const Row& row) { return table_detail::text_of(std::invoke(get, row)); }) {}
  /// Of a key that means the same in all tables.
  template <class Get>
  TableColumn(std::string_view key, Get get) : TableColumn(key, meaning_of_key(key), get) {}

  ColumnInfo info;
  std::function<std::string(const Row&)> cell;
};

/// For a column of what only some rows have: `part` gives it, as an optional or a pointer, and
/// `get` what is shown of it. The cell is empty where the row lacks it.
template <class Part, class Get>
auto if_any(Part part, Get get) {
  return [part, get](const auto& row) {
    const auto& found = std::invoke(part, row);
    using Shown = std::remove_cvref_t<decltype(std::invoke(get, *found))>;
    using Cell = std::optional<typename table_detail::Plain<Shown>::type>;
    return found ? Cell(std::invoke(get, *found)) : Cell();
  };
}

/// What tables are made from.
struct TableInputs {
  const SessionData& session;
  const std::vector<SummaryRow>& rows;  // those that count
  const SlowSamples& slow_samples;
  const NightRows* nights = nullptr;  // of a session that was checked against a history
  const std::vector<SummaryRow>* impossible = nullptr;  // for summary.csv alone
  const GapRows* gap = nullptr;                         // of a comparison; for its tables alone
  const FleetRows* fleet = nullptr;  // of sessions that were put together, from their tables
};

/// Where a table is written.
enum class TableUse {
  session,           // into the session's folder, and wherever `details` are
  details,           // for the page and by `launchgap export`
  fleet,             // wherever `details` are, and alone of a fleet: many devices side by side
  every_page,        // wherever `session`, `details` or `fleet` are
  export_only,       // by `launchgap export` only, since the page draws nothing of it
  comparison,        // of several sessions, or of one with several generations of GPUs
  comparison_cases,  // with those where all of a comparison is asked for, since it may be long
};

std::string_view name_of(TableUse use);

/// Of several sessions, and so of no single one.
inline bool of_comparison(TableUse use) {
  return use == TableUse::comparison || use == TableUse::comparison_cases;
}

struct Table {
  std::string_view name;         // of the file
  std::string_view one_row_per;  // "device, arm, process configuration, case and metric"
  TableUse use;
  std::vector<ColumnInfo> columns;  // the first is the session's id
  /// Hands over each row's cells, without that of the session's id.
  std::function<void(const TableInputs&, const std::function<void(std::vector<std::string>)>&)>
      fill;
};

/// The first column of every table.
inline constexpr ColumnInfo kSessionColumn = {"session_id",
                                              CellKind::text,
                                              "",
                                              "session",
                                              "The session: one `launchgap run`."};

/// `rows` returns all rows as a vector, or hands them one by one to its second argument.
template <class Row, class Rows>
Table make_table(std::string_view name,
                 std::string_view one_row_per,
                 TableUse use,
                 Rows rows,
                 std::vector<TableColumn<Row>> columns) {
  Table table{name, one_row_per, use, {kSessionColumn}, {}};
  for (const TableColumn<Row>& column : columns) table.columns.push_back(column.info);
  table.fill = [rows, columns = std::move(columns)](const TableInputs& inputs, const auto& put) {
    const auto put_row = [&](const Row& row) {
      std::vector<std::string> cells;
      cells.reserve(columns.size() + 1);
      for (const TableColumn<Row>& column : columns) cells.push_back(column.cell(row));
      put(std::move(cells));
    };
    if constexpr (std::is_invocable_v<Rows, const TableInputs&>) {
      for (const Row& row : rows(inputs)) put_row(row);
    } else {
      rows(inputs, put_row);
    }
  };
  return table;
}

}  // namespace launchgap
