#include "tests/fake_cuda/memory.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sys/mman.h>

namespace launchgap::fake {
namespace {
constexpr std::size_t kMapFrom = std::size_t{1} << 16;
}

std::shared_ptr<Block> Block::create(std::size_t bytes, int device) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const bool mapping = rounded >= kMapFrom;
  void* memory = nullptr;
  if (mapping) {
    memory = mmap(nullptr,
                  rounded,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1,
                  0);
    if (memory == MAP_FAILED) memory = nullptr;
    // As on a GPU, whose memory is there at once: no fault at each 4 KiB.
    if (memory != nullptr) madvise(memory, rounded, MADV_HUGEPAGE);
  } else {
    memory = std::aligned_alloc(kAlignment, rounded);
  }
  if (memory == nullptr) return nullptr;
  const Owner owner = mapping ? Owner::kernel : Owner::heap;
  return std::shared_ptr<Block>(new Block(memory, rounded, bytes, owner, device));
}

std::shared_ptr<Block> Block::mapping(Range range, std::shared_ptr<PhysicalPages> memory) {
  std::shared_ptr<Block> block(new Block(reinterpret_cast<void*>(range.begin),
                                         range.bytes,
                                         range.bytes,
                                         Owner::somebody_else,
                                         memory->device));
  block->live = false;
  block->physical = std::move(memory);
  return block;
}

std::shared_ptr<Block> Block::registered(Range range) {
  std::shared_ptr<Block> block(new Block(
      reinterpret_cast<void*>(range.begin), range.bytes, range.bytes, Owner::somebody_else, kHost));
  block->mapped = true;  // all of today's systems have one space of addresses
  return block;
}

Block::Block(void* memory, std::size_t bytes, std::size_t requested, Owner owner, int device)
    : requested_bytes(requested), range_(range_of(memory, bytes)), owner_(owner), device_(device) {}

Block::~Block() {
  auto* const memory = reinterpret_cast<void*>(range_.begin);
  if (owner_ == Owner::kernel) munmap(memory, range_.bytes);
  if (owner_ == Owner::heap) std::free(memory);
}

BlockPointer AddressMap::at(std::uintptr_t address) const {
  const auto found = blocks_.find(address);
  return found == blocks_.end() ? nullptr : found->second;
}

BlockPointer AddressMap::holding(const Range& range) const {
  auto next = blocks_.upper_bound(range.begin);
  if (next == blocks_.begin()) return nullptr;
  const auto& block = std::prev(next)->second;
  return block->range().contains(range) ? block : nullptr;
}

bool AddressMap::accessible(const Range& range, int device) const {
  if (range.bytes == 0) return true;
  if (const auto block = holding(range)) {
    if (!block->live) return false;
    return block->pinned_host() ? block->mapped : block->managed || block->device() == device;
  }
  std::uintptr_t reached = range.begin;
  for (const auto& block : within(range)) {
    if (!block->physical || !block->live || block->device() != device) return false;
    if (block->range().begin > reached) return false;
    reached = block->range().end();
  }
  return reached >= range.end();
}

std::vector<BlockPointer> AddressMap::within(const Range& range) const {
  std::vector<BlockPointer> found;
  auto at = blocks_.upper_bound(range.begin);
  if (at != blocks_.begin()) --at;
  for (; at != blocks_.end() && at->first < range.end(); ++at) {
    if (at->second->range().overlaps(range)) found.push_back(at->second);
  }
  return found;
}

std::vector<BlockPointer> AddressMap::extract(int device) {
  std::vector<BlockPointer> taken;
  std::erase_if(blocks_, [&](const auto& entry) {
    if (entry.second->device() != device) return false;
    taken.push_back(entry.second);
    return true;
  });
  return taken;
}

std::size_t Pool::in_use() const {
  return std::accumulate(
      free_.begin(), free_.end(), reserved_, [](std::size_t bytes, const auto& block) {
        return bytes - block->bytes();
      });
}

BlockPointer Pool::take(std::size_t bytes, const Timeline* stream, double now_ns) {
  auto best = free_.end();
  for (auto candidate = free_.begin(); candidate != free_.end(); ++candidate) {
    const Block& block = **candidate;
    const std::size_t most = std::max(2 * bytes, 2 * Block::kAlignment);
    if (block.bytes() < bytes || block.bytes() > most) continue;
    if (block.freed_by->timeline != stream && !block.freed_by->complete(now_ns)) continue;
    if (best == free_.end() || block.bytes() < (*best)->bytes()) best = candidate;
  }
  if (best == free_.end()) return nullptr;
  BlockPointer block = *best;
  free_.erase(best);
  return block;
}

std::vector<BlockPointer> Pool::release(unsigned long long keep, double now_ns) {
  std::stable_sort(free_.begin(), free_.end(), [](const auto& a, const auto& b) {
    return a->bytes() > b->bytes();
  });
  std::vector<BlockPointer> released;
  std::erase_if(free_, [&](const BlockPointer& block) {
    if (reserved_ <= keep || !block->freed_by->complete(now_ns)) return false;
    reserved_ -= block->bytes();
    released.push_back(block);
    return true;
  });
  return released;
}

std::optional<Range> ReservedRanges::reserve(std::size_t bytes) {
  void* const memory = mmap(
      nullptr, bytes + kGranularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (begin + kGranularity - 1) / kGranularity * kGranularity;
  if (aligned > begin) munmap(memory, aligned - begin);
  if (const std::size_t rest = begin + kGranularity - aligned; rest > 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), rest);
  ranges_.emplace(aligned, bytes);
  return Range{aligned, bytes};
}

bool ReservedRanges::contains(const Range& range) const {
  const auto next = ranges_.upper_bound(range.begin);
  if (next == ranges_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(next);
  return Range{begin, bytes}.contains(range);
}

bool ReservedRanges::free(const Range& range) {
  const auto found = ranges_.find(range.begin);
  if (found == ranges_.end() || found->second != range.bytes) return false;
  munmap(reinterpret_cast<void*>(range.begin), range.bytes);
  ranges_.erase(found);
  return true;
}

void ReservedRanges::fill(const Range& range) {
  mprotect(reinterpret_cast<void*>(range.begin), range.bytes, PROT_READ | PROT_WRITE);
}

void ReservedRanges::empty(const Range& range) {
  (void)mmap(reinterpret_cast<void*>(range.begin),
             range.bytes,
             PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1,
             0);
}

}  // namespace launchgap::fake
