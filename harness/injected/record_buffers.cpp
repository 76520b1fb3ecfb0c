#include "harness/injected/record_buffers.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace launchgap::injected {

bool RecordBuffers::begin() {
  if (!make_piece(0)) return false;
  // The first that are used come without page faults.
  constexpr std::size_t kReady = 2;
  std::memset(at(0), 0, kReady * kBytes);
  return true;
}

bool RecordBuffers::make_piece(std::size_t piece) {
  void* const room = mmap(nullptr,
                          kPerPiece * kBytes,
                          PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1,
                          0);
  if (room == MAP_FAILED) return false;
  std::uint8_t* expected = nullptr;
  if (!pieces_[piece].compare_exchange_strong(expected, static_cast<std::uint8_t*>(room))) {
    munmap(room, kPerPiece * kBytes);  // another thread was quicker
    return true;
  }
  for (std::size_t i = piece * kPerPiece; i < (piece + 1) * kPerPiece; ++i)
    states_[i].store(kFree, std::memory_order_release);
  made_.fetch_add(1, std::memory_order_release);
  return true;
}

std::uint8_t* RecordBuffers::take() {
  for (;;) {
    const std::size_t pieces = made_.load(std::memory_order_acquire), count = pieces * kPerPiece;
    const std::size_t first = next_free_.load(std::memory_order_relaxed);
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t i = (first + n) % count;
      std::uint8_t expected = kFree;
      if (states_[i].load(std::memory_order_relaxed) == kFree &&
          states_[i].compare_exchange_strong(expected, kAtCupti, std::memory_order_acquire)) {
        next_free_.store(i + 1, std::memory_order_relaxed);
        in_use_.fetch_add(1, std::memory_order_relaxed);
        return at(i);
      }
    }
    if (pieces == kPieces || !make_piece(pieces)) return nullptr;
  }
}

bool RecordBuffers::give_back_full(std::uint8_t* buffer, std::size_t valid_bytes) {
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    std::uint8_t* const begin = pieces_[piece].load(std::memory_order_acquire);
    if (!begin) return false;
    if (buffer < begin || buffer >= begin + kPerPiece * kBytes) continue;
    const std::size_t i = piece * kPerPiece + static_cast<std::size_t>(buffer - begin) / kBytes;
    valid_bytes_[i] = std::min(valid_bytes, kBytes);
    states_[i].store(kFull, std::memory_order_release);
    return true;
  }
  return false;
}

RecordBuffers::Full RecordBuffers::next_full() {
  const std::size_t count = made_.load(std::memory_order_acquire) * kPerPiece;
  // In turn, so that none waits for ever.
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = next_;
    next_ = (next_ + 1) % count;
    if (states_[i].load(std::memory_order_acquire) == kFull) return {at(i), i, valid_bytes_[i]};
  }
  return {nullptr, 0, 0};
}

void RecordBuffers::recycle(const Full& full) {
  std::memset(full.data, 0, full.valid_bytes);
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  states_[full.index].store(kFree, std::memory_order_release);
  // It has its memory already; one that was never used would have to get it.
  next_free_.store(full.index, std::memory_order_relaxed);
}

}  // namespace launchgap::injected
