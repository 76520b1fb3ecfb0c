// Device and pinned memory: host allocations with an address map.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

class Pool;

/// Memory of cuMemCreate: counted until it is released and mapped nowhere any more, which is when
/// its last owner goes.
struct PhysicalPages {
  int device;
  std::size_t bytes;
};

/// One allocation, or one mapping of physical memory; unmapped when its last owner goes.
class Block {
 public:
  static constexpr int kHost = -1;
  static constexpr std::size_t kAlignment = 256;

  /// Null when the host has no such memory. Nothing is touched, so a large block costs nothing
  /// before it is used.
  static std::shared_ptr<Block> create(std::size_t bytes, int device);
  /// Part of a reserved range, which is whose it stays. Not to be accessed yet.
  static std::shared_ptr<Block> mapping(Range range, std::shared_ptr<PhysicalPages> memory);
  /// The program's own memory, which cuMemHostRegister makes known.
  static std::shared_ptr<Block> registered(Range range);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Range range() const { return range_; }
  std::size_t bytes() const { return range_.bytes; }
  int device() const { return device_; }
  bool pinned_host() const { return device_ == kHost; }
  bool registered() const { return pinned_host() && owner_ == Owner::somebody_else; }

  std::size_t requested_bytes;              // by who holds it now
  bool live = true;                         // may be accessed, in stream order
  bool mapped = false;                      // pinned host memory only: has a device pointer
  bool managed = false;                     // of cuMemAllocManaged
  Pool* pool = nullptr;                     // of cuMemAllocAsync
  bool freed = false;                       // of a pool only: cuMemFreeAsync was called
  ItemPointer freed_by;                     // the entry of a stream after which it is free
  std::shared_ptr<PhysicalPages> physical;  // of a mapping only

 private:
  enum class Owner { heap, kernel, somebody_else };
  Block(void* memory, std::size_t bytes, std::size_t requested, Owner owner, int device);

  Range range_;
  Owner owner_;
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

  /// The blocks that have a byte of `range`, by address.
  std::vector<BlockPointer> within(const Range& range) const;

  /// Whether a kernel on `device` may access `range`, which may span several mappings.
  bool accessible(const Range& range, int device) const;

  /// Takes out every block of `device`.
  std::vector<BlockPointer> extract(int device);

 private:
  std::map<std::uintptr_t, BlockPointer> blocks_;
};

/// What cuMemFreeAsync freed and the device has not got back.
class Pool {
 public:
  unsigned long long threshold = 0;
  bool destroyed = false;  // and goes when nothing of it is in use any more

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

/// Ranges of addresses without memory, of cuMemAddressReserve.
class ReservedRanges {
 public:
  static constexpr std::size_t kGranularity = std::size_t{2} << 20;

  /// Nothing if there are not so many addresses left.
  std::optional<Range> reserve(std::size_t bytes);
  bool contains(const Range& range) const;
  /// False: it is none of them.
  bool free(const Range& range);
  /// Makes the memory accessible; what it holds before is anything.
  static void fill(const Range& range);
  /// Takes the memory away.
  static void empty(const Range& range);

 private:
  std::map<std::uintptr_t, std::size_t> ranges_;
};

}  // namespace launchgap::fake
