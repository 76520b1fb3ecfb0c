#include "harness/allocation/smallest_limit.h"

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
                        kLargestLimit,
                        kSimulatedStep,
                        2 * kLargestLimit);
}

SmallestLimit smallest_limit(const std::function<bool(std::uint64_t limit_bytes)>& completes,
                             std::uint64_t largest,
                             std::uint64_t step_bytes,
                             std::uint64_t most) {
  SmallestLimit result;
  if (!completes(largest)) return result;
  std::uint64_t fails = 0, enough = largest;
  while (enough - fails > step_bytes) {
    stop_if_asked();
    const std::uint64_t middle = fails + (enough - fails) / 2 / step_bytes * step_bytes;
    (completes(middle) ? enough : fails) = middle;
  }
  result.bytes = enough;
  constexpr std::uint64_t kTries = 64;
  for (std::uint64_t i = kTries; i > 0 && !result.fails_again_at; --i) {
    stop_if_asked();
    const std::uint64_t limit = (enough + enough * i / kTries) / step_bytes * step_bytes;
    if (limit > enough && limit <= most && !completes(limit)) result.fails_again_at = limit;
  }
  return result;
}

}  // namespace launchgap::allocation
