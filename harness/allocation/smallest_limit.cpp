#include "harness/allocation/smallest_limit.h"

#include <algorithm>

#include "harness/core/stop.h"

namespace launchgap::allocation {

bool plays(const Script& script, Player& player) {
  player.prepare(script.places, 0);
  for (const Step& step : script.steps) {
    switch (step.kind()) {
      case Step::Kind::allocate:
        if (!player.allocate(step.place(), step.bytes(), step.stream(), step.align())) return false;
        break;
      case Step::Kind::release:
        player.release(step.place(), step.bytes());
        break;
      case Step::Kind::wait:
        break;
    }
  }
  return true;
}

bool completes(const Script& script,
               const BlockAllocatorInfo& allocator,
               std::uint64_t limit_bytes) {
  if (limit_bytes < script.peak_live_bytes) return false;
  SimulatedMemory memory(limit_bytes);
  BlockPlayer player(memory, allocator, limit_bytes);
  return plays(script, player);
}

SmallestLimit smallest_limit(const Script& script, const BlockAllocatorInfo& allocator) {
  return smallest_limit([&](std::uint64_t limit) { return completes(script, allocator, limit); },
                        least_limit(script, kSimulatedStep),
                        kLargestLimit,
                        kSimulatedStep,
                        2 * kLargestLimit);
}

std::uint64_t least_limit(const Script& script, std::uint64_t step_bytes) {
  const std::uint64_t steps = script.peak_live_bytes / step_bytes;
  return steps > 0 ? (steps - 1) * step_bytes : 0;
}

SmallestLimit smallest_limit(const std::function<bool(std::uint64_t limit_bytes)>& completes,
                             std::uint64_t least,
                             std::uint64_t largest,
                             std::uint64_t step_bytes,
                             std::uint64_t most) {
  constexpr std::uint64_t kTries = 64;
  SmallestLimit result;
  std::uint64_t largest_failure = 0;
  const auto tried = [&](std::uint64_t limit) {
    stop_if_asked();
    const bool enough = completes(limit);
    if (!enough) largest_failure = std::max(largest_failure, limit);
    return enough;
  };
  if (!tried(largest)) return result;
  std::uint64_t fails = std::min(least, largest), enough = largest;
  constexpr int kMostRounds = 8;
  bool further = true;
  for (int round = 0; further && round < kMostRounds; ++round) {
    while (enough - fails > step_bytes) {
      const std::uint64_t middle = fails + (enough - fails) / 2 / step_bytes * step_bytes;
      (tried(middle) ? enough : fails) = middle;
    }
    // What completes below, the lowest first; from there on it is looked for once more.
    further = false;
    const std::uint64_t below = enough;
    std::uint64_t before = least;
    for (std::uint64_t i = 1; i < kTries && !further; ++i) {
      const std::uint64_t limit = least + (below - least) * i / kTries / step_bytes * step_bytes;
      if (limit <= before || limit >= below) continue;
      further = tried(limit);
      if (further) {
        enough = limit;
        fails = before;
      }
      before = limit;
    }
  }
  result.bytes = enough;
  for (std::uint64_t i = kTries; i > 0; --i) {
    const std::uint64_t limit = (enough + enough * i / kTries) / step_bytes * step_bytes;
    if (limit <= largest_failure) break;
    if (limit > enough && limit <= most && !tried(limit)) break;
  }
  if (largest_failure > enough) result.fails_again_at = largest_failure;
  return result;
}

}  // namespace launchgap::allocation
