#include "harness/core/csv_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/text.h"

namespace launchgap {

std::string read_csv_record(std::string_view& text, std::vector<std::string>& cells) {
  // The cells of the record before keep their memory: a fleet's tables have millions of rows.
  std::size_t count = 0;
  const auto next_cell = [&]() -> std::string& {
    if (count == cells.size()) cells.emplace_back();
    cells[count].clear();
    return cells[count++];
  };
  std::string* cell = &next_cell();
  bool quoted = false, was_quoted = false;
  std::string wrong;
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of(quoted ? "\"" : "\",\r\n"), text.size());
    if (plain > 0 && was_quoted) {
      wrong = "a quote in the middle of a cell";
      break;
    }
    cell->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text.front();
    text.remove_prefix(1);
    if (quoted) {
      if (text.starts_with('"')) {
        *cell += '"';
        text.remove_prefix(1);
      } else {
        quoted = false;
        was_quoted = true;
      }
    } else if (c == ',') {
      cell = &next_cell();
      was_quoted = false;
    } else if (c == '\n') {
      break;
    } else if (c == '\r' && text.starts_with('\n')) {
      continue;
    } else if (c == '"' && cell->empty() && !was_quoted) {
      quoted = true;
    } else if (c == '"' || was_quoted) {
      wrong = "a quote in the middle of a cell";
      break;
    } else {
      *cell += c;
    }
  }
  cells.resize(count);
  if (!wrong.empty()) return wrong;
  return quoted ? "a quote that is never closed" : "";
}

CsvReader::CsvReader(std::string_view text, std::string name)
    : name_(std::move(name)), text_(text) {
  read(header_);
  const std::set<std::string> columns(header_.begin(), header_.end());
  if (columns.contains("") || columns.size() != header_.size()) {
    throw Error("{}: the header is missing, or names a column twice", name_);
  }
}

bool CsvReader::next() {
  if (text_.empty()) return false;
  read(cells_);
  if (cells_.size() != header_.size())
    throw Error("{}: {} under {}",
                where(),
                counted(cells_.size(), "cell"),
                counted(header_.size(), "column"));
  return true;
}

void CsvReader::read(std::vector<std::string>& cells) {
  line_ = next_line_;
  const std::string_view before = text_;
  const std::string wrong = read_csv_record(text_, cells);
  if (!wrong.empty()) throw Error("{}: {}", where(), wrong);
  const std::string_view record = before.substr(0, before.size() - text_.size());
  next_line_ += static_cast<std::size_t>(std::ranges::count(record, '\n'));
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  if (found == header_.end()) throw Error("{} has no column '{}'", name_, name);
  return static_cast<std::size_t>(found - header_.begin());
}

std::string CsvReader::where() const {
  return fmt::format("{}, line {}", name_, line_);
}

CsvTable CsvTable::parse(std::string_view text, std::string name) {
  CsvReader reader(text, name);
  CsvTable table;
  table.name_ = std::move(name);
  table.header_ = reader.header();
  while (reader.next()) {
    table.rows_.push_back(reader.cells());
    table.lines_.push_back(reader.line());
  }
  return table;
}

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(header_, column) != header_.end();
}

const std::string& CsvTable::at(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(header_, column);
  if (found == header_.end()) throw Error("{} has no column '{}'", name_, column);
  return rows_.at(row).at(static_cast<std::size_t>(found - header_.begin()));
}

double CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string& cell = at(row, column);
  const std::optional<double> value = number_of_text<double>(cell);
  if (!value) throw Error("{}: {} '{}' is no number", where(row), column, cell);
  return *value;
}

std::string CsvTable::where(std::size_t row) const {
  return fmt::format("{}, line {}", name_, lines_.at(row));
}

}  // namespace launchgap
