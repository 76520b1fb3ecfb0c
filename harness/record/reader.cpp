#include "harness/record/reader.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

SampleBlock sample_block(const Json& record) {
  SampleBlock block;
  block.case_name = record.at("case").get<std::string>();
  block.block = record.at("block").get<int>();
  block.first = record.at("first").get<std::uint64_t>();
  block.begin_ns = record.at("begin_ns").get<std::int64_t>();
  block.end_ns = record.at("end_ns").get<std::int64_t>();
  block.metrics = record.at("metrics").get<std::vector<std::string>>();
  const std::size_t length = record.at("t0_ns").size();
  for (const Json& column : record.at("values")) {
    std::vector<double>& values = block.values.emplace_back();
    values.reserve(column.size());
    for (const Json& value : column)
      values.push_back(value.is_null() ? std::nan("") : value.get<double>());
    if (values.size() != length)
      throw Error(fmt::format("a block of {} samples has a column of {}", length, values.size()));
  }
  if (block.values.size() != block.metrics.size()) {
    throw Error(
        fmt::format("{} metrics and {} columns", block.metrics.size(), block.values.size()));
  }
  return block;
}

/// "launchgap/2" is newer than "launchgap/1"; text of another form is not a schema of ours.
bool is_newer(const std::string& schema) {
  return schema.starts_with("launchgap/") &&
         std::atoi(schema.c_str() + 10) > std::atoi(kSchema.data() + 10);
}

}  // namespace

std::vector<std::string> read_records(const std::filesystem::path& file,
                                      const RecordVisitor& visitor) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {with_errno(fmt::format("{} cannot be read", file.string()))};
  std::vector<std::string> problems;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const bool torn = in.eof();  // the line ended without '\n'
    if (torn || line.empty()) continue;
    try {
      const Json record = Json::parse(line);
      const auto schema = maybe<std::string>(record, "schema").value_or("");
      if (is_newer(schema)) {
        problems.push_back(
            fmt::format("{}, line {}: schema {} is newer than {}, which this launchgap reads: use "
                        "a newer launchgap",
                        file.string(),
                        number,
                        schema,
                        kSchema));
        break;
      }
      if (schema != kSchema) throw Error("it has no \"schema\":\"launchgap/1\"");
      if (record.at("record") == "samples") {
        visitor.samples(sample_block(record));
      } else {
        visitor.other(record);
      }
    } catch (const nlohmann::json::exception& error) {
      problems.push_back(
          fmt::format("{}, line {}: not a record: {}", file.string(), number, error.what()));
    } catch (const Error& error) {
      problems.push_back(
          fmt::format("{}, line {}: not a record: {}", file.string(), number, error.what()));
    }
  }
  return problems;
}

}  // namespace launchgap
