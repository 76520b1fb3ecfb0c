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

/// More memory does not always help, since regions double and rests are not split off. So limits
/// that complete may lie below one that does not, and both figures hold as far as was tried.
struct SmallestLimit {
  /// The least limit that was found to complete: one step less does not, nor does any of 64 limits
  /// spaced evenly below it. Nothing if the script does not complete with the largest.
  std::optional<std::uint64_t> bytes;
  /// The largest that was tried above `bytes`, of 64 spaced evenly up to twice as much and of those
  /// of the bisection, at which it fails again.
  std::optional<std::uint64_t> fails_again_at;
};

/// A limit with which nothing can complete: below what is live at once.
std::uint64_t least_limit(const Script& script, std::uint64_t step_bytes);

/// By bisection up to kLargestLimit in steps of 256 B.
SmallestLimit smallest_limit(const Script& script, const BlockAllocatorInfo& allocator);

/// By bisection of [`least`, `largest`], a multiple of `step_bytes`, of whatever `completes` says,
/// and again below what was found as long as something there completes. It is not asked for less
/// than `least`, with which nothing completes, nor for more than `most`.
SmallestLimit smallest_limit(const std::function<bool(std::uint64_t limit_bytes)>& completes,
                             std::uint64_t least,
                             std::uint64_t largest,
                             std::uint64_t step_bytes,
                             std::uint64_t most);

}  // namespace launchgap::allocation
