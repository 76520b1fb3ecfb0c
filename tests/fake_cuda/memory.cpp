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
  } else {
    memory = std::aligned_alloc(kAlignment, rounded);
  }
  if (memory == nullptr) return nullptr;
  return std::shared_ptr<Block>(new Block(memory, rounded, bytes, mapping, device));
}

Block::Block(void* memory, std::size_t bytes, std::size_t requested, bool mapping, int device)
    : requested_bytes(requested),
      range_(range_of(memory, bytes)),
      mapping_(mapping),
      device_(device) {}

Block::~Block() {
  auto* const memory = reinterpret_cast<void*>(range_.begin);
  if (mapping_) {
    munmap(memory, range_.bytes);
  } else {
    std::free(memory);
  }
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
  const auto block = holding(range);
  if (!block || !block->live) return false;
  return block->pinned_host() ? block->mapped : block->device() == device;
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

}  // namespace launchgap::fake
