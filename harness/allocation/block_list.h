// Blocks of regions, in lists by address: what allocators that split and merge blocks share.
#pragma once

#include <limits>
#include <vector>

#include "harness/allocation/block_allocator.h"

namespace launchgap::allocation {

inline constexpr BlockId kNoBlock = std::numeric_limits<BlockId>::max();

/// A part of a region, between its neighbours.
struct ListedBlock {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  // 0: free
  BlockId previous = kNoBlock, next = kNoBlock;
};

/// All blocks of an allocator, by their numbers.
template <class Block>
class BlockList {
 public:
  Block& operator[](BlockId id) { return blocks_[id]; }
  const Block& operator[](BlockId id) const { return blocks_[id]; }
  bool is_free(BlockId id) const { return id != kNoBlock && blocks_[id].requested == 0; }

  /// The number of one that was forgotten is given again.
  BlockId add(const Block& block) {
    if (unused_.empty()) {
      blocks_.push_back(block);
      return static_cast<BlockId>(blocks_.size() - 1);
    }
    const BlockId id = unused_.back();
    unused_.pop_back();
    blocks_[id] = block;
    return id;
  }
  void forget(BlockId id) { unused_.push_back(id); }

  /// Cuts a block; returns the rest behind `bytes`, which is free.
  BlockId split(BlockId id, std::uint64_t bytes) {
    Block rest = blocks_[id];
    rest.address += bytes;
    rest.bytes -= bytes;
    rest.requested = 0;
    rest.previous = id;
    const BlockId rest_id = add(rest);
    if (rest.next != kNoBlock) blocks_[rest.next].previous = rest_id;
    blocks_[id].bytes = bytes;
    blocks_[id].next = rest_id;
    return rest_id;
  }

  /// A free block with those of its free neighbours of which `joins` says so; `take` is told of
  /// each before it is part of the other.
  BlockId merged(BlockId id, const auto& joins, const auto& take) {
    const auto join = [&](BlockId left, BlockId right) {
      blocks_[left].bytes += blocks_[right].bytes;
      blocks_[left].next = blocks_[right].next;
      if (blocks_[left].next != kNoBlock) blocks_[blocks_[left].next].previous = left;
      forget(right);
    };
    if (const BlockId next = blocks_[id].next; is_free(next) && joins(next)) {
      take(next);
      join(id, next);
    }
    if (const BlockId previous = blocks_[id].previous; is_free(previous) && joins(previous)) {
      take(previous);
      join(previous, id);
      return previous;
    }
    return id;
  }

 private:
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
};

}  // namespace launchgap::allocation
