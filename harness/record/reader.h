// Reads records back, one at a time and in bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/schema.h"

namespace launchgap {

/// A `samples` record.
struct SampleBlock {
  std::string case_name;
  int block = 0;
  std::uint64_t first = 0;
  std::optional<std::uint64_t> key;  // the payload of its first sample's NVTX range
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<std::string> metrics;
  std::vector<std::vector<double>> values;  // per metric; missing ones are NaN
};

struct RecordVisitor {
  std::function<void(SampleBlock&&)> samples;
  std::function<void(const Json&)> other;  // every other kind
};

/// Calls the visitor for each record of a file, in order. A last line without its end, which a
/// killed writer leaves, is ignored. Returns a line of text for everything else that could not be
/// read ("FILE, line 17: not a record: …"), of many the first and how many there are; reading goes
/// on after a garbled line, and stops at a newer schema, at a second run and at a line that no
/// memory should hold. A block that is there twice is read once, and said. What the visitor throws
/// as Error is said of the record's line.
std::vector<std::string> read_records(const std::filesystem::path& file,
                                      const RecordVisitor& visitor);

/// The `run` that a file begins with; nothing if its first line is none or cannot be read.
std::optional<Json> first_record(const std::filesystem::path& file);

}  // namespace launchgap
