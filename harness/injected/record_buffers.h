// The buffers that CUPTI writes its records to. It asks for them on the threads that launch, and
// gives them back on any, so neither takes a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace launchgap::injected {

class RecordBuffers {
 public:
  static constexpr std::size_t kBytes = 1 << 20;  // NVIDIA advises 1 to 10 MB
  static constexpr std::size_t kMost = 2048;      // since CUDA 13 each thread has one

  struct Full {
    std::uint8_t* data;
    std::size_t index, valid_bytes;
  };

  /// Makes the first of them. False if the system has no room.
  bool begin();

  /// A zeroed buffer; null where all are in use and there is no room for more. Room is reserved for
  /// sixteen at a time; memory comes as it is written to.
  std::uint8_t* take();
  /// False if the buffer is none of these.
  bool give_back_full(std::uint8_t* buffer, std::size_t valid_bytes);
  /// The next one that is full; its data is null where none is.
  Full next_full();
  /// Zeroes what was used, so that CUPTI need not.
  void recycle(const Full& full);

  /// Whether so many are at CUPTI that it should be asked for them.
  bool scarce() const { return in_use_.load(std::memory_order_relaxed) > kMost / 4; }

 private:
  enum State : std::uint8_t { kNotMade, kFree, kAtCupti, kFull };
  static constexpr std::size_t kPerPiece = 16, kPieces = kMost / kPerPiece;

  bool make_piece(std::size_t piece);
  std::uint8_t* at(std::size_t index) const {
    return pieces_[index / kPerPiece].load(std::memory_order_acquire) + index % kPerPiece * kBytes;
  }

  std::array<std::atomic<std::uint8_t*>, kPieces> pieces_{};
  std::array<std::atomic<std::uint8_t>, kMost> states_{};
  std::array<std::size_t, kMost> valid_bytes_{};
  std::atomic<std::size_t> made_{0};       // pieces
  std::atomic<std::size_t> next_free_{0};  // to be looked at for being free
  std::atomic<std::size_t> in_use_{0};
  std::size_t next_ = 0;  // to be looked at for being full
};

}  // namespace launchgap::injected
