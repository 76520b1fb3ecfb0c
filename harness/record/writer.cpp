#include "harness/record/writer.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/record/records.h"

namespace launchgap {
namespace {

void append_integer(std::string& line, std::int64_t value) {
  char digits[24];
  line.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// Times to a thousandth of a nanosecond, which only quotients have; other values so that they read
/// back equal.
void append_value(std::string& line, double value, bool time) {
  if (!std::isfinite(value)) {
    line += "null";
    return;
  }
  const auto whole = static_cast<std::int64_t>(value);
  if (std::abs(value) < 9e15 && static_cast<double>(whole) == value) {
    append_integer(line, whole);
    return;
  }
  char digits[400];
  const auto result =
      time ? std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 3)
           : std::to_chars(digits, digits + sizeof digits, value);
  line.append(digits, result.ptr);
}

}  // namespace

void write_session(const std::filesystem::path& folder, const SessionRecord& session) {
  write_file(folder / "session.json", text_of_json(record_to_json(session), 1) + "\n");
}

RecordWriter::RecordWriter(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RecordWriter::~RecordWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

RecordWriter RecordWriter::create(const std::filesystem::path& path) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) throw WriteError(path);
  return {path, descriptor};
}

RecordWriter RecordWriter::reopen(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) throw WriteError(path);
  RecordWriter writer(path, descriptor);
  off_t end = lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  while (end > 0 && pread(descriptor, &last, 1, end - 1) == 1 && last != '\n') --end;
  if (ftruncate(descriptor, end) != 0) throw WriteError(path);
  return writer;
}

void RecordWriter::write(const Json& record) {
  line_ = to_line(record);
  write_line();
}

void RecordWriter::write_samples(std::string_view case_name,
                                 int block,
                                 std::uint64_t first,
                                 const Block& samples,
                                 std::span<const Column> more,
                                 std::optional<std::uint64_t> key) {
  const auto column_of = [&](std::size_t i) {
    const std::size_t own = samples.metrics().size();
    return i < own ? std::pair(samples.metrics()[i], samples.values(i))
                   : std::pair(more[i - own].metric, std::span<const double>(more[i - own].values));
  };
  const std::size_t columns = samples.metrics().size() + more.size();
  line_.clear();
  fmt::format_to(
      std::back_inserter(line_),
      R"({{"schema":"{}","record":"samples","case":{},"block":{},"first":{},{}"begin_ns":{},"end_ns":{},"t0_ns":[)",
      kSchema,
      text_of_json(case_name),
      block,
      first,
      key ? fmt::format(R"("key":{},)", *key) : "",
      samples.begin_ns(),
      samples.end_ns());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i > 0) line_ += ',';
    append_integer(line_, samples.starts_ns()[i] - samples.begin_ns());
  }
  line_ += R"(],"metrics":[)";
  for (std::size_t m = 0; m < columns; ++m) {
    fmt::format_to(std::back_inserter(line_), R"({}"{}")", m > 0 ? "," : "", column_of(m).first);
  }
  line_ += R"(],"values":[)";
  for (std::size_t m = 0; m < columns; ++m) {
    const auto [name, values] = column_of(m);
    const bool time = metric(name).unit == "ns";
    line_ += m > 0 ? ",[" : "[";
    bool separate = false;
    for (const double value : values) {
      if (std::exchange(separate, true)) line_ += ',';
      append_value(line_, value, time);
    }
    line_ += ']';
  }
  line_ += "]}\n";
  write_line();
}

void RecordWriter::write_line() {
  const char* at = line_.data();
  std::size_t left = line_.size();
  while (left > 0) {
    const ssize_t written = ::write(descriptor_, at, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw WriteError(path_);
    }
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

}  // namespace launchgap
