// NVTX ranges on their way from the program's threads to the one that writes: each thread has a
// ring of its own, so that no thread of the program waits for another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace launchgap::injected {

/// A name is kept to this length.
inline constexpr std::size_t kLongestRangeName = 127;

struct EndedRange {
  std::int64_t begin_ns, end_ns;
  std::uint32_t thread;
  std::uint8_t length;
  char name[kLongestRangeName];
};

class RangeRing {
 public:
  static constexpr std::size_t kRoom = 1024;

  /// By its one thread. False if it is full.
  bool put(const EndedRange& range) {
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    if (at - taken_.load(std::memory_order_acquire) == kRoom) return false;
    ranges_[at % kRoom] = range;
    written_.store(at + 1, std::memory_order_release);
    return true;
  }
  /// By the one that writes. False if it is empty.
  bool take(EndedRange& range) {
    const std::uint64_t at = taken_.load(std::memory_order_relaxed);
    if (at == written_.load(std::memory_order_acquire)) return false;
    range = ranges_[at % kRoom];
    taken_.store(at + 1, std::memory_order_release);
    return true;
  }
  /// Whether so many wait that they should be taken.
  bool half_full() const { return written_ - taken_ >= kRoom / 2; }

  std::atomic<bool> abandoned{false};  // its thread has ended

 private:
  EndedRange ranges_[kRoom];
  std::atomic<std::uint64_t> written_{0}, taken_{0};
};

class RangeRings {
 public:
  /// A new one; null if there is no memory for it.
  RangeRing* add() noexcept {
    try {
      // Not zeroed: its pages come as they are written to.
      auto ring = std::make_unique_for_overwrite<RangeRing>();
      const std::lock_guard lock(mutex_);
      return rings_.emplace_back(std::move(ring)).get();
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  /// Takes all that wait: use(range) for each. No thread that adds a ring waits for that.
  template <class Use>
  void drain(Use&& use) {
    std::vector<RangeRing*> rings;
    {
      const std::lock_guard lock(mutex_);
      for (const std::unique_ptr<RangeRing>& ring : rings_) rings.push_back(ring.get());
    }
    EndedRange range;
    for (RangeRing* const ring : rings) {
      const bool abandoned = ring->abandoned;
      while (ring->take(range)) use(range);
      if (!abandoned) continue;
      const std::lock_guard lock(mutex_);
      std::erase_if(rings_,
                    [&](const std::unique_ptr<RangeRing>& one) { return one.get() == ring; });
    }
  }

 private:
  std::mutex mutex_;  // a thread takes it with its first range
  std::vector<std::unique_ptr<RangeRing>> rings_;
};

}  // namespace launchgap::injected
