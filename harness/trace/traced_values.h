// What the records of a block say of each of its samples, as values of metrics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/core/block.h"
#include "harness/core/process_config.h"
#include "harness/measure/benchmark.h"
#include "harness/trace/join.h"
#include "harness/trace/trace_clock.h"

namespace launchgap {

/// The metrics that traced runs add to a case with these.
std::vector<std::string_view> traced_metrics(TracedAs as,
                                             const std::vector<std::string_view>& metrics);

/// Which sample a time of the trace belongs to: each sample lasts until the next one begins.
class SampleWindows {
 public:
  SampleWindows(const Block& block, const TraceClock& clock) {
    begins_.reserve(block.size());
    for (const std::int64_t start_ns : block.starts_ns())
      begins_.push_back(clock.trace_time(start_ns) - clock.uncertainty_ns());
    end_ = clock.trace_time(block.end_ns()) + clock.uncertainty_ns();
  }

  /// Nothing for times before the first sample (its warm-up) and after the last.
  std::optional<std::size_t> sample_at(std::int64_t time_ns) const {
    if (begins_.empty() || time_ns < begins_.front() || time_ns > end_) return std::nullopt;
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_, time_ns) - begins_.begin()) -
           1;
  }

  std::size_t size() const { return begins_.size(); }

 private:
  std::vector<std::int64_t> begins_;
  std::int64_t end_ = 0;
};

/// Values of a block, and how many of its samples lack records or have too many, those apart that
/// have impossible ones.
struct TracedValues {
  std::vector<Column> columns;
  std::uint64_t samples_without_records = 0;
  std::uint64_t missing_records = 0;
  std::uint64_t impossible_calls =
      0;  // that allocate or give back; those that launch are the join's
  double expected_records = 0;
  std::uint64_t allocations_joined = 0;
  std::size_t kernels_per_sample = 0;  // of library work: the usual number

  /// The column of a metric. Throws std::logic_error if the case has none such.
  std::vector<double>& of(std::string_view metric);
  /// Counts a sample as lacking records unless it has as many as expected.
  bool expect(double found, double expected);
  /// Leaves a sample without traced metrics.
  void spoil(std::size_t sample);
  /// Samples that have no traced metrics.
  std::uint64_t spoilt_samples() const;
};

/// The records of a block.
struct BlockRecords {
  const activity::Trace& trace;
  const Joined& joined;
  const SampleWindows& windows;
  TracedAs as;
  double operations;               // Case::operations_per_sample
  std::size_t kernels_per_sample;  // of library work, in the blocks before; 0: there were none
};

/// At the levels below `all` records are only checked, and give no columns. A sample of which a
/// record cannot be, or is missing, has none of the metrics.
TracedValues traced_values(const BlockRecords& records, TraceLevel level);

/// A column without values.
Column empty_column(std::string_view metric, std::size_t samples);

}  // namespace launchgap
