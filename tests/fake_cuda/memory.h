// Device and pinned memory: host allocations with an address map.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

/// One allocation; unmapped when its last owner goes.
class Block {
 public:
  static constexpr int kHost = -1;
  static constexpr std::size_t kAlignment = 256;

  /// Null when the host has no such memory. Nothing is touched, so a large block costs nothing
  /// before it is used.
  static std::shared_ptr<Block> create(std::size_t bytes, int device);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Range range() const { return range_; }
  std::size_t bytes() const { return range_.bytes; }
  int device() const { return device_; }
  bool pinned_host() const { return device_ == kHost; }

  std::size_t requested_bytes;  // by who holds it now
  bool live = true;             // may be accessed, in stream order
  bool mapped = false;          // pinned host memory only: has a device pointer
  bool pooled = false;          // of cuMemAllocAsync
  bool freed = false;           // pooled only: cuMemFreeAsync was called
  ItemPointer freed_by;         // the entry of a stream after which it is free

 private:
  Block(void* memory, std::size_t bytes, std::size_t requested, bool mapping, int device);

  Range range_;
  bool mapping_;
  int device_;
};

using BlockPointer = std::shared_ptr<Block>;

/// Every live block of the process by address.
class AddressMap {
 public:
  void insert(BlockPointer block) { blocks_[block->range().begin] = std::move(block); }
  void erase(const Block& block) { blocks_.erase(block.range().begin); }

  /// The block that begins at `address`; null when there is none.
  BlockPointer at(std::uintptr_t address) const;

  /// The block that holds all of `range`; null when there is none.
  BlockPointer holding(const Range& range) const;

  /// Whether a kernel on `device` may access `range`.
  bool accessible(const Range& range, int device) const;

  /// Takes out every block of `device`.
  std::vector<BlockPointer> extract(int device);

 private:
  std::map<std::uintptr_t, BlockPointer> blocks_;
};

/// The default pool of a device: what cuMemFreeAsync freed and the device has not got back.
class Pool {
 public:
  unsigned long long threshold = 0;

  std::size_t reserved() const { return reserved_; }
  std::size_t in_use() const;

  void add_reserved(std::size_t bytes) { reserved_ += bytes; }
  void put(BlockPointer block) { free_.push_back(std::move(block)); }

  /// The best fitting free block: freed earlier in the same stream, or by work that is complete.
  /// Null when none fits without wasting more than half of it.
  BlockPointer take(std::size_t bytes, const Timeline* stream, double now_ns);

  /// Releases free blocks, large ones first, while more than `keep` bytes are reserved.
  std::vector<BlockPointer> release(unsigned long long keep, double now_ns);

 private:
  std::size_t reserved_ = 0;
  std::vector<BlockPointer> free_;
};

}  // namespace launchgap::fake
