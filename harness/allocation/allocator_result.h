// What a replay found of one allocator, and of all of them as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/allocation/creep.h"
#include "harness/allocation/replay.h"
#include "harness/allocation/smallest_limit.h"
#include "harness/record/json.h"

namespace launchgap::allocation {

struct AllocatorResult {
  std::string name;
  std::uint64_t limit_bytes = 0;
  Replay replay;
  std::optional<SmallestLimit> smallest;  // where it was asked for
  std::vector<Epoch> epochs;              // likewise
  Creep creep;                            // of these
};

/// Where a trace was played to: "sim", "host", or a device.
struct Played {
  std::string trace;  // its name
  std::string over;
  TraceHead head;
  TraceFacts facts;
  TraceCounts counts;
  bool paced = false;
  std::string injected;  // into epochs; empty: nothing
  std::vector<AllocatorResult> allocators;
};

/// docs/allocation.md has its form.
Json played_as_json(const Played& played);

/// "bfc_growth needs 4.2 % less than bfc, …": whether regions that grow make a trace need less than
/// one region; empty unless both were asked.
std::string growth_answer(const Played& played);

}  // namespace launchgap::allocation
