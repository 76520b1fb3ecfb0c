// The caching allocator of PyTorch.
#pragma once

#include <map>
#include <memory_resource>
#include <set>

#include "harness/allocation/block_list.h"

namespace launchgap::allocation {

enum class CachingSegments : std::uint8_t {
  fixed,       // each a region of its own: PyTorch's default
  expandable,  // one range of addresses for each stream and pool, which grows page by page
};

/// Sizes are rounded up to 512 B. Up to 1 MiB they are small, and have segments of 2 MiB; others
/// below 10 MiB have segments of 20 MiB, and larger ones a segment of their own, in units of 2 MiB.
/// The smallest free block of the same stream and pool is taken, of equal ones that with the lowest
/// address. It is split if at least 512 B are left of a small one, more than 1 MiB of a large one.
/// Released blocks merge with free neighbours of their segment. Where no segment can be had, those
/// that are free as a whole are given back, and it is tried once more.
///
/// Expandable: pages of 2 MiB for small blocks and of 20 MiB for others are mapped at the lowest
/// addresses where the request then fits, and only what is asked for is cut off. Where no page can
/// be had, free pages are unmapped, and it is tried once more.
class Caching : public BlockAllocator {
 public:
  Caching(Memory& memory, std::uint64_t limit_bytes, CachingSegments segments);
  ~Caching() override;
  Caching(const Caching&) = delete;
  Caching& operator=(const Caching&) = delete;

  /// PyTorch knows no alignment beyond its 512 B, so `align` is not looked at.
  std::optional<BlockId> allocate(std::uint64_t bytes,
                                  std::uint32_t stream,
                                  std::uint64_t align) override;
  void release(BlockId block) override;
  Address address(BlockId block) const override { return blocks_[block].address; }
  std::uint64_t granted_bytes(BlockId block) const override { return blocks_[block].bytes; }
  void trim() override;
  Holding holding() const override;
  std::uint64_t reserved_bytes() const override { return reserved_; }
  void for_each_part(const std::function<void(const Part&)>& visit) const override;

 private:
  /// A part of a segment.
  struct Block : ListedBlock {
    std::uint32_t stream = 0;
    bool small = false;
    bool mapped = true;  // false only of expandable segments
  };
  /// Free blocks of a pool: by stream, size and address.
  struct FreeBlock {
    std::uint32_t stream;
    std::uint64_t bytes;
    Address address;
    BlockId id;
    auto operator<=>(const FreeBlock&) const = default;
  };
  /// Addresses of a pool without memory.
  struct UnmappedBlock {
    std::uint32_t stream;
    Address address;
    BlockId id;
    auto operator<=>(const UnmappedBlock&) const = default;
  };
  struct Pool {
    explicit Pool(std::pmr::memory_resource* nodes) : free(nodes), unmapped(nodes) {}
    std::pmr::set<FreeBlock> free;
    std::pmr::set<UnmappedBlock> unmapped;
  };

  bool expandable() const { return segments_ == CachingSegments::expandable; }
  Pool& pool_of(const Block& block) { return block.small ? small_ : large_; }
  std::uint64_t page_bytes(bool small) const;
  void insert(BlockId id);
  void erase(BlockId id);
  /// With its neighbours of the same kind: free ones if it is mapped, else unmapped ones. It is in
  /// no list; what it is merged with is taken from its own.
  BlockId merged(BlockId id);

  BlockId find(std::uint64_t rounded, std::uint32_t stream, bool small);
  BlockId new_segment(std::uint64_t rounded, std::uint32_t stream, bool small);
  BlockId expand(std::uint64_t rounded, std::uint32_t stream, bool small);
  BlockId expansion_begin(std::uint64_t rounded, std::uint32_t stream, bool small);
  BlockId map(BlockId id, std::uint64_t bytes);
  void unmap(BlockId id);
  void release_cached(Pool& pool);

  Memory& memory_;
  std::uint64_t limit_;
  CachingSegments segments_;
  std::uint64_t reserved_ = 0, granted_ = 0;
  BlockList<Block> blocks_;
  std::pmr::unsynchronized_pool_resource nodes_;
  Pool small_, large_;
  std::pmr::map<Address, BlockId> segment_begins_;  // the first block of each
};

}  // namespace launchgap::allocation
