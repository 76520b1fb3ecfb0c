// Reads records back, one at a time and in bounded memory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/record/schema.h"

namespace launchgap {

/// A `samples` record.
struct SampleBlock {
  std::string case_name;
  int block = 0;
  std::uint64_t first = 0;
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
/// read ("file, line 17: not a record: …"); reading goes on after a garbled line, and stops at a
/// newer schema.
std::vector<std::string> read_records(const std::filesystem::path& file,
                                      const RecordVisitor& visitor);

}  // namespace launchgap
