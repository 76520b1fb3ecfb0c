// A case under tracing: after each block, its records become values per sample beside those of the
// host's clock, and what was wrong with them is counted.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/core/block.h"
#include "harness/measure/benchmark.h"
#include "harness/trace/join.h"
#include "harness/trace/trace_clock.h"
#include "harness/trace/tracer.h"

namespace launchgap {

/// The metrics that the traced arm adds to a case with these.
std::vector<std::string_view> traced_metrics(TracedAs as,
                                             const std::vector<std::string_view>& metrics);

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

class CaseTrace {
 public:
  /// `operations` is what Case::operations_per_sample says. At the levels below `all` records are
  /// only checked and give no columns.
  CaseTrace(Tracer& tracer, TracedAs as, int operations);

  /// Forgets what was recorded so far: set-up and warm-up.
  void begin();
  /// After a block, with the device idle: its traced values.
  std::vector<Column> finish(const Block& block);

  /// Why nothing of this case may be believed, with the state that says so ("invalid:dropped");
  /// nothing if it may. Zero tolerance: one impossible record is enough.
  std::optional<TraceUnavailable> invalid() const;

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

 private:
  class SampleWindows;

  /// Values of a block, and how many of its samples lack records or have too many.
  struct Values {
    std::vector<Column> columns;
    std::uint64_t samples_without_records = 0;
    std::uint64_t allocations_joined = 0;
    std::size_t kernels_per_sample = 0;  // of library work: the most
  };

  Values collect(const SampleWindows& windows);
  void note(const SampleWindows& windows);
  Values values(const SampleWindows& windows) const;
  Values launches(const SampleWindows& windows) const;
  Values bursts(const SampleWindows& windows) const;
  Values work(const SampleWindows& windows) const;
  Values chains(const SampleWindows& windows) const;
  Values allocations(const SampleWindows& windows) const;
  Values calls_alone(const SampleWindows& windows) const;
  std::vector<const activity::KernelRun*> work_kernels() const;
  void add_flag_column(const Block& block, std::vector<Column>& columns);

  Tracer& tracer_;
  TracedAs as_;
  double operations_;
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

/// The proof that tracing works here, before anything is measured with it: 100 launches of an empty
/// kernel must all be there, joined, with possible times. Throws TraceUnavailable
/// ("invalid:no_records", "invalid:dropped", "invalid:bad_timestamps", "invalid:unjoined"); `seen`
/// has the count of each in any case.
void check_with_canary(Tracer& tracer, Device& device, JoinCounts& seen);

}  // namespace launchgap
