// Allocators that hand out blocks of larger regions, as frameworks have them. They are written here
// because they are what is studied: from the rules that TensorFlow and PyTorch publish, which
// docs/allocation.md tells with their sources.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "harness/allocation/memory.h"

namespace launchgap::allocation {

/// A block that is in use, by the number that its allocator gave it.
using BlockId = std::uint32_t;

/// What an allocator holds, in bytes. `reserved` is what it took from its memory;
/// `reserved == granted + free`.
struct Holding {
  std::uint64_t reserved = 0;
  std::uint64_t granted = 0;  // of blocks in use, as large as they were made
  std::uint64_t free = 0;
  std::uint64_t largest_free = 0;  // block
  bool operator==(const Holding&) const = default;
};

/// A part of the memory that an allocator holds. The parts of a region follow one another.
struct Part {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  // of a block in use: what was asked for; 0: free
};

class BlockAllocator {
 public:
  virtual ~BlockAllocator() = default;

  /// A block of at least `bytes`, more than 0 and at most kMostBytes, at a multiple of `align`, a
  /// power of two or 0. Nothing if there is no room: whatever the allocator does then by itself it
  /// has done. What is freed is for the same stream again where an allocator keeps streams apart.
  virtual std::optional<BlockId> allocate(std::uint64_t bytes,
                                          std::uint32_t stream,
                                          std::uint64_t align) = 0;
  virtual void release(BlockId block) = 0;
  virtual Address address(BlockId block) const = 0;
  virtual std::uint64_t granted_bytes(BlockId block) const = 0;

  /// Gives memory that is in no use back to where it came from, as far as the allocator can.
  virtual void trim() = 0;

  virtual Holding holding() const = 0;
  /// The first of these alone, at no cost.
  virtual std::uint64_t reserved_bytes() const = 0;
  /// Every part, in rising order of addresses.
  virtual void for_each_part(const std::function<void(const Part&)>& visit) const = 0;
};

struct BlockAllocatorInfo {
  std::string_view name;   // "bfc"
  std::string_view about;  // for help and docs
  /// `limit_bytes`: of what it takes from `memory`.
  std::unique_ptr<BlockAllocator> (*make)(Memory& memory, std::uint64_t limit_bytes);
};

/// All of them, in the order in which they are shown.
std::span<const BlockAllocatorInfo> block_allocators();
/// Throws UsageError that lists them.
const BlockAllocatorInfo& block_allocator_named(std::string_view name);

}  // namespace launchgap::allocation
