#include "harness/summary/csv.h"

#include <cmath>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

std::string escaped(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  return path.parent_path() / fmt::format(".{}.{}", path.filename().string(), getpid());
}

void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code failed;
  std::filesystem::rename(from, to, failed);
  if (failed) throw Error(fmt::format("{} cannot be written: {}", to.string(), failed.message()));
}

}  // namespace

CsvWriter::CsvWriter(std::filesystem::path path, const std::vector<std::string>& header)
    : path_(std::move(path)),
      temporary_(temporary_beside(path_)),
      out_(temporary_, std::ios::binary),
      columns_(header.size()) {
  if (!out_) throw Error(with_errno(fmt::format("{} cannot be written", path_.string())));
  row(header);
}

void CsvWriter::row(const std::vector<std::string>& cells) {
  if (cells.size() != columns_) {
    throw std::logic_error(fmt::format(
        "{}: a row of {} cells under {} columns", path_.string(), cells.size(), columns_));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) out_ << (i > 0 ? "," : "") << escaped(cells[i]);
  out_ << "\r\n";
}

void CsvWriter::commit() {
  out_.close();
  if (!out_) throw Error(with_errno(fmt::format("{} cannot be written", path_.string())));
  move_into_place(temporary_, path_);
}

std::string cell(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = temporary_beside(path);
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(with_errno(fmt::format("{} cannot be written", path.string())));
  move_into_place(temporary, path);
}

}  // namespace launchgap
