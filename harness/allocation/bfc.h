// The allocator of TensorFlow and XLA: best fit with coalescing.
#pragma once

#include <memory_resource>
#include <set>
#include <vector>

#include "harness/allocation/block_list.h"

namespace launchgap::allocation {

/// Where its regions come from.
enum class BfcGrowth : std::uint8_t {
  none,       // one region of the whole limit, at the first request: TensorFlow's default
  regions,    // of 2 MiB, and then each twice as large: TensorFlow's allow_growth
  collected,  // the same; where nothing fits, regions that are free as a whole are given back first
  mapped,     // the same, each mapped behind the one before, so that free blocks merge across them
};

/// Sizes are rounded up to 256 B. The smallest free block that fits is taken, of equal ones that
/// with the lowest address. It is split if it is at least twice as large as the request, or at
/// least 128 MiB larger; otherwise the request gets all of it. Released blocks merge with their
/// free neighbours of the same region at once. Bins, in which TensorFlow keeps free blocks by size,
/// make its search faster and change nothing that it finds.
class Bfc : public BlockAllocator {
 public:
  Bfc(Memory& memory, std::uint64_t limit_bytes, BfcGrowth growth);
  ~Bfc() override;
  Bfc(const Bfc&) = delete;
  Bfc& operator=(const Bfc&) = delete;

  std::optional<BlockId> allocate(std::uint64_t bytes,
                                  std::uint32_t stream,
                                  std::uint64_t align) override;
  void release(BlockId block) override;
  Address address(BlockId block) const override { return chunks_[block].address; }
  std::uint64_t granted_bytes(BlockId block) const override { return chunks_[block].bytes; }
  /// Only what `collected` can give back; TensorFlow's other forms never do.
  void trim() override;
  Holding holding() const override;
  std::uint64_t reserved_bytes() const override { return reserved_; }
  void for_each_part(const std::function<void(const Part&)>& visit) const override;

 private:
  /// Free chunks by size, and by address among equals.
  struct FreeChunk {
    std::uint64_t bytes;
    Address address;
    BlockId id;
    auto operator<=>(const FreeChunk&) const = default;
  };
  struct Region {
    Address address;
    std::uint64_t bytes;
    BlockId first;
  };

  void insert_free(BlockId id);
  void erase_free(BlockId id);
  std::optional<BlockId> find(std::uint64_t rounded, std::uint64_t requested, std::uint64_t align);
  /// A free chunk, in no list of free ones, with its free neighbours.
  BlockId merged(BlockId id);
  bool extend(std::uint64_t rounded);
  Address more_memory(std::uint64_t bytes);
  bool collect(std::uint64_t rounded);
  void give_back_free_regions();
  bool is_free(const Region& region) const;

  Memory& memory_;
  std::uint64_t limit_;
  BfcGrowth growth_;
  std::uint64_t next_region_;  // bytes
  Address range_ = 0;          // of `mapped`: the one region's addresses
  std::uint64_t reserved_ = 0, granted_ = 0;
  std::vector<Region> regions_;
  BlockList<ListedBlock> chunks_;
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::set<FreeChunk> free_;
};

}  // namespace launchgap::allocation
