#include "harness/core/csv_writer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/stop.h"

namespace launchgap {
namespace {

void append_escaped(std::string& line, std::string_view text) {
  const auto needs_quotes = [](char c) { return c == ',' || c == '"' || c == '\r' || c == '\n'; };
  if (std::ranges::none_of(text, needs_quotes)) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace

CsvWriter::CsvWriter(const std::filesystem::path& path, const std::vector<std::string>& header)
    : out_(path), columns_(header.size()) {
  row(header);
}

void CsvWriter::row(const std::vector<std::string>& cells) {
  stop_if_asked();
  if (cells.size() != columns_) {
    throw std::logic_error(
        fmt::format("a row of {} cells under {} columns", cells.size(), columns_));
  }
  line_.clear();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line_ += ',';
    append_escaped(line_, cells[i]);
  }
  line_ += "\r\n";
  out_.write(line_);
}

void CsvWriter::mark_end() {
  out_.write("\r\n");
}

void CsvWriter::commit() {
  out_.commit();
}

std::string cell(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

}  // namespace launchgap
