// CSV as RFC 4180 has it: CRLF, and quotes around fields that need them.
#pragma once

#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/output_file.h"

namespace launchgap {

/// Writes a table, which is in its place when it is complete. Throws WriteError if it cannot be
/// written, and Stopped once a signal was noted.
class CsvWriter {
 public:
  CsvWriter(const std::filesystem::path& path, const std::vector<std::string>& header);
  /// Throws std::logic_error unless the row has as many cells as the header.
  void row(const std::vector<std::string>& cells);
  /// An empty line, by which the reader of a pipe knows that all of it came.
  void mark_end();
  void commit();

 private:
  OutputFile out_;
  std::string line_;
  std::size_t columns_;
};

/// A cell: a number so that it reads back equal, nothing for what is absent.
std::string cell(std::optional<double> value);
/// "true" or "false". Only for bool itself: a double would rather become a bool than an optional.
template <std::same_as<bool> Bool>
std::string cell(Bool value) {
  return value ? "true" : "false";
}

}  // namespace launchgap
