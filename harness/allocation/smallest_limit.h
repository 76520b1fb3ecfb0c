// How little memory a trace needs under an allocator: the one figure that all allocators share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "harness/allocation/block_allocator.h"
#include "harness/allocation/replay.h"
#include "harness/allocation/script.h"

namespace launchgap::allocation {

/// The largest limit that is tried: 64 GiB.
inline constexpr std::uint64_t kLargestLimit = std::uint64_t{1} << 36;
inline constexpr std::uint64_t kSimulatedStep = 256;

/// Whether all of it can be had, untimed. Nothing is waited for.
bool plays(const Script& script, Player& player);

/// Whether an allocator with so many simulated bytes can play all of it.
bool completes(const Script& script,
               const BlockAllocatorInfo& allocator,
               std::uint64_t limit_bytes);

struct SmallestLimit {
  /// A limit from which the script completes: one step less, and it does not. Nothing if it
  /// does not complete with kLargestLimit.
  std::optional<std::uint64_t> bytes;
  /// More memory does not always help, since regions double and rests are not split off: the
  /// largest of 64 limits, spaced evenly up to twice `bytes`, at which it fails again.
  std::optional<std::uint64_t> fails_again_at;
};

/// By bisection of [0, kLargestLimit] in steps of 256 B.
SmallestLimit smallest_limit(const Script& script, const BlockAllocatorInfo& allocator);

/// By bisection of [0, `largest`], a multiple of `step_bytes`, of whatever `completes` says. It is
/// not asked for more than `most`.
SmallestLimit smallest_limit(const std::function<bool(std::uint64_t limit_bytes)>& completes,
                             std::uint64_t largest,
                             std::uint64_t step_bytes,
                             std::uint64_t most);

}  // namespace launchgap::allocation
