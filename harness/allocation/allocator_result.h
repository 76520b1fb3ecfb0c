// What a replay found of one allocator, and of all of them as the document that is written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/allocation/creep.h"
#include "harness/allocation/replay.h"
#include "harness/allocation/smallest_limit.h"
#include "harness/record/replay_record.h"

namespace launchgap::allocation {

struct AllocatorResult {
  std::string name;
  std::uint64_t limit_bytes = 0;
  Replay replay;
  std::optional<SmallestLimit> smallest;  // where it was asked for
  std::vector<EpochRecord> epochs;        // likewise
  Creep creep;                            // of these
  /// How much less of a GPU was free when it had given back everything than before it began.
  std::optional<std::int64_t> kept_bytes;
};

/// A trace that was played, and where its allocators had their memory: "sim", "host", or a device.
struct Played {
  std::string trace;  // its name
  std::string over;
  bool on_fake_gpu = false;
  TraceHead head;
  TraceFacts facts;
  TraceFaults counts;
  bool paced = false, touched = false;
  std::string injected;  // into epochs; empty: nothing
  std::vector<AllocatorResult> allocators;
};

ReplayRecord record_of(const Played& played);

/// As it is written: what an allocator has no figure for is null, so that every allocator has every
/// key.
Json document_of(const ReplayRecord& record);

}  // namespace launchgap::allocation
