// NVTX ranges on their way from the program's threads to the one that writes: each thread has a
// ring of its own, so that no thread of the program waits for another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
  bool put(const EndedRange& range);
  /// By the one that writes. False if it is empty.
  bool take(EndedRange& range);
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
  RangeRing* add() noexcept;

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
      if (abandoned) remove(ring);
    }
  }

 private:
  void remove(const RangeRing* ring);

  std::mutex mutex_;  // a thread takes it with its first range
  std::vector<std::unique_ptr<RangeRing>> rings_;
};

}  // namespace launchgap::injected
