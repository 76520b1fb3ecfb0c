// What the trace of a run or of one of its cases was, as a record with its fields.
// docs/record-schema.md says what they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/fields.h"
#include "harness/record/launch_tail.h"

namespace launchgap {

/// How many records there were of each kind, and how they fit together. Older versions counted
/// less.
struct TraceCounts {
  using Count = std::optional<std::int64_t>;
  Count launches, kernels, joined, kernels_without_launch, launches_without_kernel, dropped,
      unknown, zero, inverted, early, duplicates, overlap, nested;

  static void fields(auto& self, auto&& field) {
    field("launches", self.launches);
    field("kernels", self.kernels);
    field("joined", self.joined);
    field("kernels_without_launch", self.kernels_without_launch);
    field("launches_without_kernel", self.launches_without_kernel);
    field("dropped", self.dropped);
    field("unknown", self.unknown);
    field("zero", self.zero);
    field("inverted", self.inverted);
    field("early", self.early);
    field("duplicates", self.duplicates);
    field("overlap", self.overlap);
    field("nested", self.nested);
  }
};

/// The trace's clock against the host's.
struct ClockFit {
  std::optional<std::int64_t> offset_ns;
  std::optional<std::int64_t> uncertainty_ns, step_ns;
  std::optional<double> drift_ppm;

  static void fields(auto& self, auto&& field) {
    field("offset_ns", self.offset_ns);
    field("uncertainty_ns", self.uncertainty_ns);
    field("step_ns", self.step_ns);
    field("drift_ppm", self.drift_ppm);
  }
};

struct CountedCalls {
  std::string domain;  // "host", "driver" or "runtime"
  std::uint32_t id = 0;
  std::optional<std::string> name;  // of imported ones, whose id only tells them apart
  std::uint64_t count = 0;

  static void fields(auto& self, auto&& field) {
    field("domain", self.domain);
    field("id", self.id);
    field("name", self.name);
    field("count", self.count);
  }
};

struct CountedKernels {
  std::string name;
  std::vector<std::uint64_t> grid, block;  // in x, y and z
  std::uint64_t count = 0, total_ns = 0, shortest_ns = 0, longest_ns = 0;
  // Of imported ones.
  std::optional<double> p50_ns{}, p99_ns{}, cv{};
  std::optional<double> first_call_ns{}, later_call_ns{};  // calls: the first, the others' median
  // Of those that do the same work again and again (harness/import/kernel_changes.h).
  std::optional<std::uint64_t> repeats{};
  std::optional<double> early_ns{}, late_ns{}, change_chance{};
  std::optional<bool> ramp{};  // they grow or shrink all the way
  std::optional<double> slow_mode_share{}, fast_mode_ns{}, modes_apart_ns{};

  static void fields(auto& self, auto&& field) {
    field.optional("name", self.name);
    field.optional("grid", self.grid);
    field.optional("block", self.block);
    field.optional("count", self.count);
    field.optional("total_ns", self.total_ns);
    field.optional("shortest_ns", self.shortest_ns);
    field.optional("longest_ns", self.longest_ns);
    field("p50_ns", self.p50_ns);
    field("p99_ns", self.p99_ns);
    field("cv", self.cv);
    field("first_call_ns", self.first_call_ns);
    field("later_call_ns", self.later_call_ns);
    field("repeats", self.repeats);
    field("early_ns", self.early_ns);
    field("late_ns", self.late_ns);
    field("change_chance", self.change_chance);
    field("ramp", self.ramp);
    field("slow_mode_share", self.slow_mode_share);
    field("fast_mode_ns", self.fast_mode_ns);
    field("modes_apart_ns", self.modes_apart_ns);
  }
};

struct CountedMemory {
  std::string operation;             // "allocate" or "release"
  std::optional<std::int64_t> kind;  // CUPTI's number
  std::uint64_t pool = 0;            // 0: of no pool
  std::optional<std::int64_t> bytes;
  std::uint64_t count = 0;

  static void fields(auto& self, auto&& field) {
    field.optional("operation", self.operation);
    field("kind", self.kind);
    field.optional("pool", self.pool);
    field("bytes", self.bytes);
    field.optional("count", self.count);
  }
};

struct CountedOverheads {
  std::string kind;
  std::uint64_t count = 0, total_ns = 0;

  static void fields(auto& self, auto&& field) {
    field("kind", self.kind);
    field("count", self.count);
    field("total_ns", self.total_ns);
  }
};

/// Without a case: of the run as a whole, with what the canary saw.
struct TraceRecord {
  static constexpr std::string_view kName = "trace";
  std::optional<std::string> case_name;
  std::string state, reason;

  // Of a run.
  std::optional<std::string> level;
  std::optional<std::vector<std::string>> notes;
  std::optional<TraceCounts> canary;
  std::optional<std::int64_t> canary_tries;
  std::optional<std::string> canary_burst;  // what of it was impossible before tracing settled

  // Of a case.
  std::optional<TraceCounts> counts;
  std::optional<std::int64_t> impossible;  // records that cannot be, or are missing
  std::optional<bool> doubtful;
  std::optional<std::string> faults;
  std::optional<std::int64_t> conversion_error_ns;
  std::optional<std::uint64_t> samples_without_records;
  std::optional<std::uint64_t> flags_before_kernel;
  std::optional<std::uint64_t> allocations_joined;
  std::optional<std::uint64_t> late_blocks;
  std::optional<ClockFit> clock;
  std::optional<std::vector<CountedCalls>> calls;
  std::optional<std::vector<CountedKernels>> kernels;
  std::optional<std::vector<CountedMemory>> memory;
  std::optional<std::vector<CountedOverheads>> overheads;
  std::optional<LaunchTail> tail;  // of its launch calls, block by block

  bool of_run() const { return case_name.value_or("").empty(); }

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field.optional("state", self.state);
    field.optional("reason", self.reason);
    field.write_only("level", self.level);
    field.write_only("notes", self.notes);
    field("canary", self.canary);
    field("canary_tries", self.canary_tries);
    field.write_only("canary_burst", self.canary_burst);
    field("counts", self.counts);
    field("impossible", self.impossible);
    field("doubtful", self.doubtful);
    field("faults", self.faults);
    field("conversion_error_ns", self.conversion_error_ns);
    field.write_only("samples_without_records", self.samples_without_records);
    field("flags_before_kernel", self.flags_before_kernel);
    field.write_only("allocations_joined", self.allocations_joined);
    field.write_only("late_blocks", self.late_blocks);
    field("clock", self.clock);
    field.write_only("calls", self.calls);
    field("kernels", self.kernels);
    field("memory", self.memory);
    field.write_only("overheads", self.overheads);
    field("tail", self.tail);
  }
};

}  // namespace launchgap
