#include "harness/injected/range_rings.h"

#include <exception>

namespace launchgap::injected {

bool RangeRing::put(const EndedRange& range) {
  const std::uint64_t at = written_.load(std::memory_order_relaxed);
  if (at - taken_.load(std::memory_order_acquire) == kRoom) return false;
  ranges_[at % kRoom] = range;
  written_.store(at + 1, std::memory_order_release);
  return true;
}

bool RangeRing::take(EndedRange& range) {
  const std::uint64_t at = taken_.load(std::memory_order_relaxed);
  if (at == written_.load(std::memory_order_acquire)) return false;
  range = ranges_[at % kRoom];
  taken_.store(at + 1, std::memory_order_release);
  return true;
}

RangeRing* RangeRings::add() noexcept {
  try {
    // Not zeroed: its pages come as they are written to.
    auto ring = std::make_unique_for_overwrite<RangeRing>();
    const std::lock_guard lock(mutex_);
    return rings_.emplace_back(std::move(ring)).get();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void RangeRings::remove(const RangeRing* ring) {
  const std::lock_guard lock(mutex_);
  std::erase_if(rings_, [&](const std::unique_ptr<RangeRing>& one) { return one.get() == ring; });
}

}  // namespace launchgap::injected
