#include "harness/record/reader.h"

#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"

namespace launchgap {
namespace {

/// A block of ten million samples with its metrics has 300 MB.
constexpr std::size_t kLongestLine = std::size_t{1} << 29;
/// Of one file; a program's core in the place of records would fill a terminal.
constexpr std::size_t kMostProblems = 10;

SampleBlock sample_block(const Json& record) {
  SampleBlock block;
  block.case_name = field<std::string>(record, "case");
  block.block = natural<int>(record, "block");
  block.first = natural<std::int64_t>(record, "first");
  if (record.contains("key")) block.key = natural<std::int64_t>(record, "key");
  block.begin_ns = natural<std::int64_t>(record, "begin_ns");
  block.end_ns = natural<std::int64_t>(record, "end_ns");
  if (block.end_ns < block.begin_ns) throw Error("a block ends before it begins");
  block.metrics = field<std::vector<std::string>>(record, "metrics");
  const Json& starts = array_field(record, "t0_ns");
  for (const Json& start : starts) {
    if (!start.is_number_integer())
      throw Error("\"t0_ns\" has {}, and must have integers", kind_of(start));
  }
  const std::size_t length = starts.size();
  for (const Json& column : array_field(record, "values")) {
    if (!column.is_array()) throw Error("\"values\" has {}, and must have arrays", kind_of(column));
    std::vector<double>& values = block.values.emplace_back();
    values.reserve(column.size());
    for (const Json& value : column) {
      if (!value.is_number() && !value.is_null())
        throw Error("\"values\" has {}, and must have numbers", kind_of(value));
      values.push_back(value.is_null() ? std::nan("") : value.get<double>());
    }
    if (values.size() != length)
      throw Error("a block of {} samples has a column of {}", length, values.size());
  }
  if (block.values.size() != block.metrics.size()) {
    throw Error("{} metrics and {} columns", block.metrics.size(), block.values.size());
  }
  return block;
}

/// "launchgap/2" is newer than "launchgap/1"; text of another form is not a schema of ours.
bool is_newer(std::string_view schema) {
  const std::size_t slash = kSchema.find('/') + 1;
  if (schema.substr(0, slash) != kSchema.substr(0, slash)) return false;
  schema.remove_prefix(slash);
  const std::string_view own = kSchema.substr(slash);
  if (schema.empty() || schema.front() == '0' ||
      schema.find_first_not_of("0123456789") != std::string_view::npos)
    return false;
  return std::pair(schema.size(), schema) > std::pair(own.size(), own);
}

/// A newer schema: nothing of the rest of the file is known.
class NewerSchema : public Error {
 public:
  using Error::Error;
};

/// Hands the records of a file to a visitor.
class LineReader {
 public:
  LineReader(const std::filesystem::path& file, const RecordVisitor& visitor)
      : file_(file), visitor_(visitor) {}

  std::vector<std::string> read() {
    try {
      InputFile in(file_);
      read_lines(in);
    } catch (const Error& error) {
      problems_.emplace_back(error.what());
    } catch (const std::bad_alloc&) {
      add_problem("there is no memory left for it; the rest of the file is not read");
    }
    if (count_ > kMostProblems)
      problems_.push_back(
          fmt::format("{}: and so {} more", file_.string(), count_ - kMostProblems));
    return std::move(problems_);
  }

 private:
  void add_problem(const std::string& text) {
    if (++count_ <= kMostProblems)
      problems_.push_back(fmt::format("{}, line {}: {}", file_.string(), line_, text));
  }

  void read_lines(InputFile& in) {
    std::string_view text;
    bool torn = false;
    for (line_ = 1;; ++line_) {
      try {
        if (!in.next_line(text, torn, kLongestLine)) return;
      } catch (const Error& error) {
        return add_problem(fmt::format("{}: the rest of the file is not read", error.what()));
      }
      if (torn || text.empty()) continue;
      try {
        take(parse_json(text));
      } catch (const NewerSchema& error) {
        return add_problem(error.what());
      } catch (const Error& error) {
        add_problem(fmt::format("not a record: {}", error.what()));
      }
      if (runs_ > 1)
        return add_problem("a second run begins here: it and the rest of the file are not read");
    }
  }

  void take(const Json& record) {
    const auto schema = field<std::string>(record, "schema", "");
    if (is_newer(schema)) {
      throw NewerSchema(fmt::format(
          "schema {} is newer than {}, which this launchgap reads: use a newer launchgap",
          schema,
          kSchema));
    }
    if (schema != kSchema) throw Error("it has no \"schema\":\"launchgap/1\"");
    const auto kind = field<std::string>(record, "record");
    if (kind == "samples") {
      SampleBlock block = sample_block(record);
      if (!blocks_.emplace(block.case_name, block.block).second)
        throw Error("block {} of {} is there twice, and counts once", block.block, block.case_name);
      visitor_.samples(std::move(block));
    } else if (kind != "run" || ++runs_ == 1) {
      visitor_.other(record);
    }
  }

  const std::filesystem::path& file_;
  const RecordVisitor& visitor_;
  std::size_t line_ = 0;
  std::size_t count_ = 0;
  int runs_ = 0;
  std::set<std::pair<std::string, int>> blocks_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> read_records(const std::filesystem::path& file,
                                      const RecordVisitor& visitor) {
  return LineReader(file, visitor).read();
}

std::optional<Json> first_record(const std::filesystem::path& file) {
  try {
    InputFile in(file);
    std::string_view text;
    bool torn = false;
    if (!in.next_line(text, torn, kLongestLine) || torn) return std::nullopt;
    Json record = parse_json(text);
    if (record.is_object()) return record;
  } catch (const Error&) {  // read_records says why
  } catch (const std::bad_alloc&) {
  }
  return std::nullopt;
}

}  // namespace launchgap
