// What a replay of allocations found, as a document with its fields: `launchgap replay --json`, and
// each file of a session's replays/. docs/allocation.md says what they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/fields.h"

namespace launchgap {

struct UnusableShare {
  std::uint64_t request_bytes = 0;
  double index = 0;

  static void fields(auto& self, auto&& field) {
    field("request_bytes", self.request_bytes);
    field("index", self.index);
  }
};

/// How an allocator stood after an event of the trace, from 0, and how well the free part of its
/// memory could be used. No figure alone is honest, so they stand together (docs/allocation.md says
/// what each hides). Shares are from 0 to 1, and 0 where there is nothing to share.
struct MemoryMoment {
  std::uint64_t event = 0;
  std::int64_t t_ns = 0;
  std::uint64_t live_bytes = 0;  // of blocks in use, as they were asked for
  // Of an allocator that tells what it holds.
  std::optional<std::uint64_t> granted_bytes, reserved_bytes, free_bytes, largest_free_bytes;
  /// 1 - live / granted: what rounding and unsplit blocks cost.
  std::optional<double> internal_waste;
  /// 1 - largest free block / free: TensorFlow's and RMM's figure. Of little free memory it says
  /// nothing.
  std::optional<double> largest_block_index;
  /// 1 - live / reserved.
  std::optional<double> reserve_slack;
  /// The share of the free bytes in blocks that are smaller: what a request of that size could not
  /// use. 1 where nothing is free, as Linux has it.
  std::vector<UnusableShare> unusable;
  std::optional<std::string> occupancy;

  static void fields(auto& self, auto&& field) {
    field("event", self.event);
    field("t_ns", self.t_ns);
    field("live_bytes", self.live_bytes);
    field("granted_bytes", self.granted_bytes);
    field("reserved_bytes", self.reserved_bytes);
    field("free_bytes", self.free_bytes);
    field("largest_free_bytes", self.largest_free_bytes);
    field("internal_waste", self.internal_waste);
    field("largest_block_index", self.largest_block_index);
    field("reserve_slack", self.reserve_slack);
    field.optional("unusable", self.unusable);
    field("occupancy", self.occupancy);
  }
};

struct CallTimes {
  std::uint64_t n = 0;
  std::optional<double> p50_ns, p90_ns, p99_ns, max_ns;

  static void fields(auto& self, auto&& field) {
    field("n", self.n);
    field("p50_ns", self.p50_ns);
    field("p90_ns", self.p90_ns);
    field("p99_ns", self.p99_ns);
    field("max_ns", self.max_ns);
  }
};

struct AllocationFailure {
  std::uint64_t event = 0, bytes = 0;
  std::string cured_by;
  std::optional<std::uint64_t> device_free_bytes;  // when nothing that frees had cured it
  MemoryMoment then;                               // when it failed

  static void fields(auto& self, auto&& field) {
    field("event", self.event);
    field("bytes", self.bytes);
    field("cured_by", self.cured_by);
    field("device_free_bytes", self.device_free_bytes);
    field("then", self.then);
  }
};

struct EpochRecord {
  std::uint64_t live_bytes = 0, reserved_bytes = 0, used_bytes = 0;

  static void fields(auto& self, auto&& field) {
    field("live_bytes", self.live_bytes);
    field("reserved_bytes", self.reserved_bytes);
    field("used_bytes", self.used_bytes);
  }
};

struct CreepRecord {
  std::string kind;
  double bytes_per_epoch = 0, p = 1;
  std::optional<std::uint64_t> rarest_step_epochs;  // that so many epochs show
  std::vector<EpochRecord> epochs;

  static void fields(auto& self, auto&& field) {
    field("kind", self.kind);
    field("bytes_per_epoch", self.bytes_per_epoch);
    field("p", self.p);
    field("rarest_step_epochs", self.rarest_step_epochs);
    field("epochs", self.epochs);
  }
};

/// Of one allocator.
struct AllocatorRecord {
  std::string name;
  bool completed = false;
  std::uint64_t limit_bytes = 0;
  std::optional<std::uint64_t> c_min_bytes;
  std::uint64_t peak_live_bytes = 0;
  std::optional<double> c_min_over_peak;
  std::optional<std::uint64_t> fails_again_at;
  std::optional<std::uint64_t> reserved_peak_bytes;  // likewise
  std::optional<std::int64_t> memory_kept_bytes;
  std::uint64_t operations = 0;
  std::uint64_t recoveries = 0;
  double calls_s = 0;
  std::optional<double> operations_per_s;
  CallTimes allocate, release;
  std::optional<AllocationFailure> failure;
  std::optional<MemoryMoment> at_peak;
  std::optional<CreepRecord> creep;
  std::vector<MemoryMoment> moments;

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("completed", self.completed);
    field("limit_bytes", self.limit_bytes);
    field("c_min_bytes", self.c_min_bytes);
    field("peak_live_bytes", self.peak_live_bytes);
    field("c_min_over_peak", self.c_min_over_peak);
    field("fails_again_at", self.fails_again_at);
    field("reserved_peak_bytes", self.reserved_peak_bytes);
    field("memory_kept_bytes", self.memory_kept_bytes);
    field("operations", self.operations);
    field.optional("recoveries", self.recoveries);
    field.optional("calls_s", self.calls_s);
    field("operations_per_s", self.operations_per_s);
    field("allocate", self.allocate);
    field("release", self.release);
    field("failure", self.failure);
    field("at_peak", self.at_peak);
    field("creep", self.creep);
    field.optional("moments", self.moments);
  }
};

/// What was played.
struct TraceSummary {
  std::string name, source, sizes;
  bool truncated = false;
  std::uint32_t device = 0;
  std::uint64_t events = 0;  // of all devices
  std::uint64_t allocations = 0, releases = 0, failed = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t peak_event = 0;  // after which most is live
  std::uint64_t live_at_end = 0, live_bytes_at_end = 0;
  std::uint64_t unseen_frees = 0, missing_frees = 0, clock_went_back = 0;

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("source", self.source);
    field("sizes", self.sizes);
    field("truncated", self.truncated);
    field("device", self.device);
    field("events", self.events);
    field("allocations", self.allocations);
    field("releases", self.releases);
    field("failed", self.failed);
    field("peak_live_bytes", self.peak_live_bytes);
    field("peak_event", self.peak_event);
    field("live_at_end", self.live_at_end);
    field("live_bytes_at_end", self.live_bytes_at_end);
    field("unseen_frees", self.unseen_frees);
    field("missing_frees", self.missing_frees);
    field("clock_went_back", self.clock_went_back);
  }
};

struct ReplayRecord {
  static constexpr std::string_view kName = "replay";
  TraceSummary trace;
  std::string over;
  bool simulated = false;  // on the fake CUDA libraries of the tests
  bool paced = false;
  bool touched = false;  // each allocation was written
  std::optional<std::string> injected;
  std::vector<AllocatorRecord> allocators;

  static void fields(auto& self, auto&& field) {
    field("trace", self.trace);
    field("over", self.over);
    field.optional("simulated", self.simulated);
    field("paced", self.paced);
    field.optional("touched", self.touched);
    field("injected", self.injected);
    field("allocators", self.allocators);
  }
};

}  // namespace launchgap
