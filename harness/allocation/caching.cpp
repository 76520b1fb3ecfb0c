#include "harness/allocation/caching.h"

#include <algorithm>

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kUnit = 512;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLargestSmall = kMiB;
constexpr std::uint64_t kSmallSegment = 2 * kMiB;
constexpr std::uint64_t kLargeSegment = 20 * kMiB;
constexpr std::uint64_t kOwnSegment = 10 * kMiB;  // from this size on
constexpr std::uint64_t kSegmentUnit = 2 * kMiB;

std::uint64_t segment_bytes(std::uint64_t rounded) {
  if (rounded <= kLargestSmall) return kSmallSegment;
  if (rounded < kOwnSegment) return kLargeSegment;
  return rounded_up(rounded, kSegmentUnit);
}

}  // namespace

Caching::Caching(Memory& memory, std::uint64_t limit_bytes, CachingSegments segments)
    : memory_(memory),
      limit_(limit_bytes),
      segments_(segments),
      small_(&nodes_),
      large_(&nodes_),
      segment_begins_(&nodes_) {}

Caching::~Caching() {
  for (const auto& [begin, first] : segment_begins_) {
    std::uint64_t bytes = 0;
    for (BlockId id = first; id != kNoBlock; id = blocks_[id].next) {
      const Block& block = blocks_[id];
      bytes += block.bytes;
    }
    if (!expandable()) {
      memory_.give_back(begin, bytes);
      continue;
    }
    // Mapped parts begin and end with pages, and lie between unmapped ones.
    for (BlockId id = first; id != kNoBlock;) {
      const Address from = blocks_[id].address;
      const bool mapped = blocks_[id].mapped;
      std::uint64_t length = 0;
      for (; id != kNoBlock && blocks_[id].mapped == mapped; id = blocks_[id].next)
        length += blocks_[id].bytes;
      if (mapped) memory_.unmap(from, length);
    }
    memory_.unreserve(begin, bytes);
  }
}

std::uint64_t Caching::page_bytes(bool small) const {
  return rounded_up(small ? kSmallSegment : kLargeSegment, memory_.page_bytes());
}

std::optional<BlockId> Caching::allocate(std::uint64_t bytes, std::uint32_t stream, std::uint64_t) {
  const std::uint64_t rounded = rounded_up(bytes, kUnit);
  const bool small = rounded <= kLargestSmall;
  const auto from_memory = [&] {
    return expandable() ? expand(rounded, stream, small) : new_segment(rounded, stream, small);
  };
  BlockId id = find(rounded, stream, small);
  if (id == kNoBlock) id = from_memory();
  if (id == kNoBlock) {
    trim();
    id = from_memory();
  }
  if (id == kNoBlock) return std::nullopt;
  const std::uint64_t rest = blocks_[id].bytes - rounded;
  if (small || expandable() ? rest >= kUnit : rest > kLargestSmall)
    insert(blocks_.split(id, rounded));
  blocks_[id].requested = bytes;
  granted_ += blocks_[id].bytes;
  return id;
}

void Caching::release(BlockId block) {
  granted_ -= blocks_[block].bytes;
  blocks_[block].requested = 0;
  insert(merged(block));
}

void Caching::insert(BlockId id) {
  const Block& block = blocks_[id];
  Pool& pool = pool_of(block);
  if (block.mapped) {
    pool.free.insert({block.stream, block.bytes, block.address, id});
  } else {
    pool.unmapped.insert({block.stream, block.address, id});
  }
}

void Caching::erase(BlockId id) {
  const Block& block = blocks_[id];
  Pool& pool = pool_of(block);
  if (block.mapped) {
    pool.free.erase({block.stream, block.bytes, block.address, id});
  } else {
    pool.unmapped.erase({block.stream, block.address, id});
  }
}

BlockId Caching::merged(BlockId id) {
  return blocks_.merged(
      id,
      [&](BlockId neighbour) { return blocks_[neighbour].mapped == blocks_[id].mapped; },
      [&](BlockId neighbour) { erase(neighbour); });
}

BlockId Caching::find(std::uint64_t rounded, std::uint32_t stream, bool small) {
  auto& free = (small ? small_ : large_).free;
  auto at = free.lower_bound({stream, rounded, 0, 0});
  if (at == free.end() || at->stream != stream) return kNoBlock;
  if (expandable()) {
    // A block that can grow counts as large as it can become.
    const auto size = [&](BlockId id) {
      const BlockId next = blocks_[id].next;
      const bool grows = next != kNoBlock && !blocks_[next].mapped;
      return blocks_[id].bytes + (grows ? blocks_[next].bytes : 0);
    };
    for (auto next = std::next(at);
         next != free.end() && next->stream == stream && size(next->id) < size(at->id);
         ++next)
      at = next;
  }
  const BlockId id = at->id;
  free.erase(at);
  return id;
}

BlockId Caching::new_segment(std::uint64_t rounded, std::uint32_t stream, bool small) {
  const std::uint64_t bytes = segment_bytes(rounded);
  const Address address = memory_.take(bytes);
  if (address == 0) return kNoBlock;
  reserved_ += bytes;
  const BlockId id = blocks_.add({{address, bytes}, stream, small, true});
  segment_begins_.emplace(address, id);
  return id;
}

/// Where a block of this size can be put together of free and unmapped ones: the lowest addresses,
/// or a new segment's.
BlockId Caching::expansion_begin(std::uint64_t rounded, std::uint32_t stream, bool small) {
  auto& unmapped = (small ? small_ : large_).unmapped;
  for (auto at = unmapped.lower_bound({stream, 0, 0}); at != unmapped.end() && at->stream == stream;
       ++at) {
    const BlockId before = blocks_[at->id].previous;
    const BlockId begin = blocks_.is_free(before) ? before : at->id;
    std::uint64_t bytes = 0;
    for (BlockId id = begin; bytes < rounded && blocks_.is_free(id); id = blocks_[id].next)
      bytes += blocks_[id].bytes;
    if (bytes >= rounded) return begin;
  }
  // Somewhat more addresses than memory, for pages that lie apart.
  const std::uint64_t bytes = rounded_up(std::max(limit_ + limit_ / 8, rounded), page_bytes(small));
  const Address address = memory_.reserve(bytes);
  if (address == 0) return kNoBlock;
  const BlockId id = blocks_.add({{address, bytes}, stream, small, false});
  segment_begins_.emplace(address, id);
  insert(id);
  return id;
}

BlockId Caching::expand(std::uint64_t rounded, std::uint32_t stream, bool small) {
  BlockId id = expansion_begin(rounded, stream, small);
  if (id == kNoBlock) return kNoBlock;
  if (!blocks_[id].mapped) id = map(id, std::min(blocks_[id].bytes, rounded));
  while (id != kNoBlock && blocks_[id].bytes < rounded) {
    const BlockId next = blocks_[id].next;  // unmapped
    id = map(next, std::min(rounded - blocks_[id].bytes, blocks_[next].bytes));
  }
  if (id != kNoBlock) erase(id);
  return id;
}

/// Maps pages for at least `bytes` at the beginning of an unmapped block. Returns the free block
/// that they are part of then; none if there is no memory.
BlockId Caching::map(BlockId id, std::uint64_t bytes) {
  bytes = rounded_up(bytes, page_bytes(blocks_[id].small));
  if (!memory_.map(blocks_[id].address, bytes)) return kNoBlock;
  reserved_ += bytes;
  erase(id);
  if (bytes < blocks_[id].bytes) insert(blocks_.split(id, bytes));
  blocks_[id].mapped = true;
  id = merged(id);
  insert(id);
  return id;
}

/// Gives back the pages that lie within a free block as a whole.
void Caching::unmap(BlockId id) {
  const std::uint64_t page = page_bytes(blocks_[id].small);
  const Address begin = blocks_[id].address, end = begin + blocks_[id].bytes;
  // Pages are counted from the beginning of the segment.
  BlockId first = id;
  while (blocks_[first].previous != kNoBlock) first = blocks_[first].previous;
  const Address base = blocks_[first].address;
  const Address from = base + rounded_up(begin - base, page),
                to = base + (end - base) / page * page;
  if (from >= to) return;
  erase(id);
  if (from > begin) {
    const BlockId before = id;
    id = blocks_.split(before, from - begin);
    insert(before);
  }
  if (to < end) insert(blocks_.split(id, to - from));
  memory_.unmap(from, to - from);
  reserved_ -= to - from;
  blocks_[id].mapped = false;
  insert(merged(id));
}

void Caching::release_cached(Pool& pool) {
  if (!expandable()) {
    std::erase_if(pool.free, [&](const FreeBlock& free) {
      const Block& block = blocks_[free.id];
      if (block.previous != kNoBlock || block.next != kNoBlock) return false;
      memory_.give_back(block.address, block.bytes);
      reserved_ -= block.bytes;
      segment_begins_.erase(block.address);
      blocks_.forget(free.id);
      return true;
    });
    return;
  }
  std::vector<BlockId> ids;
  for (const FreeBlock& free : pool.free) ids.push_back(free.id);
  for (const BlockId id : ids) unmap(id);
  std::erase_if(pool.unmapped, [&](const UnmappedBlock& unmapped) {
    const Block& block = blocks_[unmapped.id];
    if (block.previous != kNoBlock || block.next != kNoBlock) return false;
    memory_.unreserve(block.address, block.bytes);
    segment_begins_.erase(block.address);
    blocks_.forget(unmapped.id);
    return true;
  });
}

void Caching::trim() {
  release_cached(large_);
  release_cached(small_);
}

Holding Caching::holding() const {
  Holding holding{reserved_, granted_, reserved_ - granted_, 0};
  for (const Pool* const pool : {&small_, &large_}) {
    // By stream first, so the largest of each stream stands before the next one's beginning.
    for (auto at = pool->free.begin(); at != pool->free.end();) {
      const auto next = pool->free.upper_bound(
          {at->stream, std::numeric_limits<std::uint64_t>::max(), ~Address{0}, kNoBlock});
      holding.largest_free = std::max(holding.largest_free, std::prev(next)->bytes);
      at = next;
    }
  }
  return holding;
}

void Caching::for_each_part(const std::function<void(const Part&)>& visit) const {
  for (const auto& [address, first] : segment_begins_) {
    for (BlockId id = first; id != kNoBlock; id = blocks_[id].next) {
      const Block& block = blocks_[id];
      if (block.mapped) visit({block.address, block.bytes, block.requested});
    }
  }
}

}  // namespace launchgap::allocation
