// CSV as RFC 4180 has it: CRLF, and quotes around fields that need them.
#pragma once

#include <concepts>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace launchgap {

/// Writes a table beside its final place and moves it there when complete. Throws Error if it
/// cannot be written.
class CsvWriter {
 public:
  CsvWriter(std::filesystem::path path, const std::vector<std::string>& header);
  /// Throws std::logic_error unless the row has as many cells as the header.
  void row(const std::vector<std::string>& cells);
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream out_;
  std::size_t columns_;
};

/// A cell: a number so that it reads back equal, nothing for what is absent.
std::string cell(std::optional<double> value);
/// "true" or "false". Only for bool itself: a double would rather become a bool than an optional.
template <std::same_as<bool> Bool>
std::string cell(Bool value) {
  return value ? "true" : "false";
}

/// Writes `text` to a file by way of a temporary one. Throws Error if it cannot.
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace launchgap
