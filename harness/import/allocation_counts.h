// What the allocations of a process come to.
#pragma once

#include <cstdint>

#include "harness/import/recording.h"

namespace launchgap::recording {

struct AllocationCounts {
  std::uint64_t allocations = 0, releases = 0, failures = 0;
  std::uint64_t unseen = 0;   // releases of what was allocated before the recording began
  std::uint64_t missing = 0;  // releases that were not recorded: the address was given again
  std::uint64_t most_live_bytes = 0, live_at_end_bytes = 0;
  bool operator==(const AllocationCounts&) const = default;
};

/// Of one GPU. A block is live until it can be used again.
AllocationCounts count_allocations(const Process& process, std::uint64_t gpu);

}  // namespace launchgap::recording
