// One of a case's slowest samples, beside which the events of its process were kept, as a record
// with its fields. docs/record-schema.md says what they mean.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "harness/record/fields.h"

namespace launchgap {

struct SlowSampleRecord {
  static constexpr std::string_view kName = "slow_sample";
  /// So many of a case in a run.
  static constexpr std::size_t kPerCase = 10;
  /// What happened so long before and after each is kept.
  static constexpr std::int64_t kAroundNs = 1'000'000;

  std::string case_name;
  int block = 0;
  std::uint64_t sample = 0;               // its number in the case and run, as in samples.csv
  std::string metric;                     // by which it is slow
  std::map<std::string, double> values;   // of the sample, by metric
  std::int64_t begin_ns = 0, end_ns = 0;  // on the clock of the events
  /// Kernels and copies that were asked for before it and had not begun when it began; where known.
  std::optional<std::uint64_t> waiting = {};
  /// Name of the file of events, where it is not that of these records.
  std::optional<std::string> events = {};

  /// By which it is slow; NaN if the record lacks it.
  double value() const {
    const auto found = values.find(metric);
    return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field.natural("block", self.block);
    field.natural("sample", self.sample);
    field("metric", self.metric);
    field("values", self.values);
    field("begin_ns", self.begin_ns);
    field("end_ns", self.end_ns);
    field("waiting", self.waiting);
    field("events", self.events);
  }
};

}  // namespace launchgap
