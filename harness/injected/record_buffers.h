// The buffers that CUPTI writes its records to. It asks for them on the threads that launch, and
// gives them back on any, so neither takes a lock or memory from the system.
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
    std::size_t valid_bytes;
  };

  /// Reserves room; memory comes as it is written to. False if the system has no room.
  bool reserve();

  /// A zeroed buffer; null where all are in use.
  std::uint8_t* take();
  void give_back_full(std::uint8_t* buffer, std::size_t valid_bytes);
  /// The next one that is full; its data is null where none is.
  Full next_full();
  /// Zeroes what was used, so that CUPTI need not.
  void recycle(const Full& full);

 private:
  enum State : std::uint8_t { kFree, kAtCupti, kFull };

  std::uint8_t* base_ = nullptr;
  std::array<std::atomic<std::uint8_t>, kMost> states_{};
  std::array<std::size_t, kMost> valid_bytes_{};
  std::size_t next_ = 0;                   // to be looked at for being full
  std::atomic<std::size_t> next_free_{0};  // to be looked at for being free
};

}  // namespace launchgap::injected
