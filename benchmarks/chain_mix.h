// The operations of a chain that imitates what a framework launches, with the statistics of traces
// of training jobs on V100 and A100 (Holistic Trace Analysis at f4d0062, its sample traces).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace launchgap {

struct ChainOperation {
  std::uint64_t nanoseconds;    // that its kernel takes
  std::size_t allocated_bytes;  // before it is launched, given back after; 0: none
};

/// Half of the operations last 2 to 9 us, four tenths 9 to 140 us and a tenth 140 to 500 us, evenly
/// by the logarithm within each part; every chain has these shares, in an order that `seed`
/// decides. 69 of 100 operations allocate, 4 KiB to 4 MiB, evenly by the logarithm: the traces tell
/// how often, not how much.
std::vector<ChainOperation> chain_operations(int count, std::uint64_t seed);

/// Operations between two waits: 60 waits in 8,568 launches.
inline constexpr int kOperationsPerWait = 143;

/// Allocations per operation.
inline constexpr double kAllocationsPerOperation = 0.69;

}  // namespace launchgap
