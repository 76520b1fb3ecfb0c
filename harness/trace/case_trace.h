// A case under tracing: after each block, its records become values per sample beside those of the
// host's clock, and what was wrong with them is counted.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/core/block.h"
#include "harness/measure/benchmark.h"
#include "harness/trace/join.h"
#include "harness/trace/trace_clock.h"
#include "harness/trace/traced_values.h"
#include "harness/trace/tracer.h"

namespace launchgap {

/// A kernel by name and shape, with its time over all samples; what belongs to none is left out.
struct KernelUse {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t shortest_ns = 0, longest_ns = 0;
};

/// Name, grid and block.
using KernelKey = std::tuple<std::string, std::array<std::int32_t, 3>, std::array<std::int32_t, 3>>;

struct MemoryKey {
  bool release = false;
  std::uint32_t kind = 0;
  std::uint64_t pool = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const MemoryKey&) const = default;
};

struct OverheadUse {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
};

/// How many records cannot be, and what follows (docs/definitions.md, "Impossible records").
struct TraceFaults {
  /// From this share on a case is invalid, and above the lesser one it is doubtful.
  static constexpr double kInvalidShare = 1e-2;
  static constexpr double kDoubtfulShare = 1e-3;

  std::uint64_t impossible = 0;  // records that cannot be, or are missing
  std::uint64_t records = 0;
  bool most_samples_are_spoilt = false;  // and so lack the traced metrics

  double share() const {
    return records == 0 ? 0 : static_cast<double>(impossible) / static_cast<double>(records);
  }
  bool invalid() const { return most_samples_are_spoilt || share() >= kInvalidShare; }
  bool doubtful() const { return !invalid() && share() > kDoubtfulShare; }
};

class CaseTrace {
 public:
  /// `operations` is what Case::operations_per_sample says; `scatter_ns` the canary's (canary.h).
  /// At the levels below `all` records are only checked and give no columns.
  CaseTrace(Tracer& tracer, TracedAs as, int operations, std::int64_t scatter_ns = 0);

  /// Forgets what was recorded so far: set-up and warm-up.
  void begin();
  /// After a block, with the device idle: its traced values; missing where a record of the sample
  /// cannot be.
  std::vector<Column> finish(const Block& block);

  /// Why nothing of this case may be believed, with the state that says so ("invalid:dropped");
  /// nothing if it may.
  std::optional<TraceUnavailable> invalid() const;
  TraceFaults faults() const;
  /// What was impossible or is missing, in words; empty if nothing.
  std::string describe_faults() const;

  /// The records of the last block.
  const activity::Trace& records() const { return trace_; }

  // What was seen, for the record.
  const JoinCounts& counts() const { return counts_; }
  const std::map<KernelKey, KernelUse>& kernels() const { return kernels_; }
  const std::map<MemoryKey, std::uint64_t>& memory() const { return memory_; }
  const std::map<activity::OverheadKind, OverheadUse>& overheads() const { return overheads_; }
  const std::map<std::pair<activity::Domain, std::uint32_t>, std::uint64_t>& calls() const {
    return calls_;
  }
  std::uint64_t samples_without_records() const { return samples_without_records_; }
  std::uint64_t flags_before_kernel() const { return flags_before_kernel_; }
  std::uint64_t allocations_joined() const { return allocations_joined_; }
  /// Blocks whose records were only complete when they were asked for again, by force.
  std::uint64_t late_blocks() const { return late_blocks_; }
  const TraceClock& clock() const { return clock_; }
  /// The largest of the blocks' errors of conversion, by which a kernel may seem to begin too
  /// early.
  std::int64_t conversion_error_ns() const { return largest_error_ns_; }

 private:
  TracedValues collect(const SampleWindows& windows);
  std::int64_t scatter_of_block(const SampleWindows& windows) const;
  bool each_launch_has_its_kernel() const;
  void note(const SampleWindows& windows);
  void add_flag_column(const Block& block, std::vector<Column>& columns);

  Tracer& tracer_;
  TracedAs as_;
  double operations_;
  std::int64_t scatter_ns_;
  std::int64_t error_ns_ = 0;  // of this block
  std::int64_t largest_error_ns_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t spoilt_samples_ = 0;
  std::uint64_t missing_records_ = 0;
  std::uint64_t impossible_calls_ = 0;
  double expected_records_ = 0;
  TraceClock clock_;
  activity::Trace trace_;
  Joined joined_;
  JoinCounts counts_;
  std::map<KernelKey, KernelUse> kernels_;
  std::map<MemoryKey, std::uint64_t> memory_;
  std::map<activity::OverheadKind, OverheadUse> overheads_;
  std::map<std::pair<activity::Domain, std::uint32_t>, std::uint64_t> calls_;
  std::uint64_t samples_without_records_ = 0;
  std::uint64_t flags_before_kernel_ = 0;
  std::uint64_t allocations_joined_ = 0;
  std::uint64_t late_blocks_ = 0;
  std::size_t kernels_per_sample_ = 0;
  bool any_records_ = false;
};

}  // namespace launchgap
