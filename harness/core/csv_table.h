// The tables of data/ as text: rows by the columns of their header.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// The text of a table of data/, "toolkit_driver.csv", as the build put it into the binary
/// (scripts/cmake/EmbedData.cmake); empty for a name that was not embedded.
std::string_view embedded_table(std::string_view name);

/// Takes one record from the front of `text`, of RFC 4180 with LF or CRLF or without its end.
/// Returns what is wrong with it, or nothing.
std::string read_csv_record(std::string_view& text, std::vector<std::string>& cells);

/// The rows of a table one after the other: RFC 4180, with LF or CRLF. What is read throws Error,
/// which names table and line, for a row with another number of cells than the header, text after a
/// closing quote, a quote that is never closed, a column that is there twice or has no name.
class CsvReader {
 public:
  /// Reads the header. `text` stays there as long as the reader.
  CsvReader(std::string_view text, std::string name);

  const std::vector<std::string>& header() const { return header_; }
  /// Throws Error for a column that the table does not have.
  std::size_t column(std::string_view name) const;

  /// Whether there was one more row. It stays until the next call.
  bool next();
  const std::vector<std::string>& cells() const { return cells_; }
  std::size_t line() const { return line_; }  // on which the row begins; the header's is 1
  std::string where() const;                  // "data/x.csv, line 3"

 private:
  void read(std::vector<std::string>& cells);

  std::string name_;
  std::string_view text_;
  std::vector<std::string> header_, cells_;
  std::size_t line_ = 1, next_line_ = 1;
};

/// A table as text: rows by the columns of its header.
class CsvTable {
 public:
  /// Throws what CsvReader does.
  static CsvTable parse(std::string_view text, std::string name);

  const std::string& name() const { return name_; }
  std::size_t size() const { return rows_.size(); }
  /// Throws Error for a column that the table does not have.
  const std::string& at(std::size_t row, std::string_view column) const;
  bool has(std::string_view column) const;
  const std::vector<std::string>& columns() const { return header_; }
  /// Throws Error, which names line and column, for a cell that is no number.
  double number(std::size_t row, std::string_view column) const;
  /// "data/x.csv, line 3", for messages.
  std::string where(std::size_t row) const;
  std::size_t line(std::size_t row) const { return lines_.at(row); }

 private:
  std::string name_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> lines_;  // on which each row begins; the header's is 1
};

}  // namespace launchgap
