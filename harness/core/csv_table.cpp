#include "harness/core/csv_table.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

/// Reads one record from the front of `text`; says what is wrong with it, or nothing.
std::string read_record(std::string_view& text, std::vector<std::string>& cells) {
  cells.assign(1, "");
  bool quoted = false, was_quoted = false;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (text.starts_with('"')) {
        cells.back() += '"';
        text.remove_prefix(1);
      } else {
        quoted = false;
        was_quoted = true;
      }
    } else if (c == ',') {
      cells.emplace_back();
      was_quoted = false;
    } else if (c == '\n') {
      return "";
    } else if (c == '\r' && text.starts_with('\n')) {
      continue;
    } else if (c == '"' && cells.back().empty() && !was_quoted) {
      quoted = true;
    } else if (c == '"' || was_quoted) {
      return "a quote in the middle of a cell";
    } else {
      cells.back() += c;
    }
  }
  return quoted ? "a quote that is never closed" : "";
}

}  // namespace

CsvTable CsvTable::parse(std::string_view text, std::string name) {
  CsvTable table;
  table.name_ = std::move(name);
  std::vector<std::string> cells;
  std::size_t line = 1;
  while (!text.empty()) {
    const std::string_view before = text;
    std::string wrong = read_record(text, cells);
    const bool is_header = table.header_.empty();
    if (wrong.empty() && !is_header && cells.size() != table.header_.size())
      wrong = fmt::format("{} cells under {} columns", cells.size(), table.header_.size());
    if (!wrong.empty()) throw Error(fmt::format("{}, line {}: {}", table.name_, line, wrong));
    if (is_header) {
      table.header_ = cells;
    } else {
      table.rows_.push_back(cells);
      table.lines_.push_back(line);
    }
    const std::string_view record = before.substr(0, before.size() - text.size());
    line += static_cast<std::size_t>(std::ranges::count(record, '\n'));
  }
  const std::set<std::string> columns(table.header_.begin(), table.header_.end());
  if (table.header_.empty() || columns.contains("") || columns.size() != table.header_.size()) {
    throw Error(fmt::format("{}: the header is missing, or names a column twice", table.name_));
  }
  return table;
}

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(header_, column) != header_.end();
}

const std::string& CsvTable::at(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(header_, column);
  if (found == header_.end()) throw Error(fmt::format("{} has no column '{}'", name_, column));
  return rows_.at(row).at(static_cast<std::size_t>(found - header_.begin()));
}

double CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string& cell = at(row, column);
  double value = 0;
  const auto [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failed != std::errc() || end != cell.data() + cell.size())
    throw Error(fmt::format("{}: {} '{}' is no number", where(row), column, cell));
  return value;
}

std::string CsvTable::where(std::size_t row) const {
  return fmt::format("{}, line {}", name_, lines_.at(row));
}

}  // namespace launchgap
