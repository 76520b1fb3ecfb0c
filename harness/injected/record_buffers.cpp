#include "harness/injected/record_buffers.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace launchgap::injected {

bool RecordBuffers::reserve() {
  void* const room = mmap(nullptr,
                          kMost * kBytes,
                          PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1,
                          0);
  if (room == MAP_FAILED) return false;
  base_ = static_cast<std::uint8_t*>(room);
  // The first that are used come without page faults.
  constexpr std::size_t kReady = 2;
  std::memset(base_, 0, kReady * kBytes);
  return true;
}

std::uint8_t* RecordBuffers::take() {
  const std::size_t first = next_free_.load(std::memory_order_relaxed);
  for (std::size_t n = 0; n < kMost; ++n) {
    const std::size_t i = (first + n) % kMost;
    std::uint8_t expected = kFree;
    if (states_[i].load(std::memory_order_relaxed) == kFree &&
        states_[i].compare_exchange_strong(expected, kAtCupti, std::memory_order_acquire)) {
      next_free_.store((i + 1) % kMost, std::memory_order_relaxed);
      return base_ + i * kBytes;
    }
  }
  return nullptr;
}

void RecordBuffers::give_back_full(std::uint8_t* buffer, std::size_t valid_bytes) {
  const auto i = static_cast<std::size_t>(buffer - base_) / kBytes;
  if (buffer < base_ || i >= kMost) return;
  valid_bytes_[i] = std::min(valid_bytes, kBytes);
  states_[i].store(kFull, std::memory_order_release);
}

RecordBuffers::Full RecordBuffers::next_full() {
  // In turn, so that none waits for ever.
  for (std::size_t n = 0; n < kMost; ++n) {
    const std::size_t i = next_;
    next_ = (next_ + 1) % kMost;
    if (states_[i].load(std::memory_order_acquire) == kFull)
      return {base_ + i * kBytes, valid_bytes_[i]};
  }
  return {nullptr, 0};
}

void RecordBuffers::recycle(const Full& full) {
  std::memset(full.data, 0, full.valid_bytes);
  const auto i = static_cast<std::size_t>(full.data - base_) / kBytes;
  states_[i].store(kFree, std::memory_order_release);
  // It has its memory already; one that was never used would have to get it.
  next_free_.store(i, std::memory_order_relaxed);
}

}  // namespace launchgap::injected
