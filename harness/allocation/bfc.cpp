#include "harness/allocation/bfc.h"

#include <algorithm>

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kUnit = 256;
constexpr std::uint64_t kFirstRegion = std::uint64_t{2} << 20;
constexpr std::uint64_t kMostWaste = std::uint64_t{128} << 20;

}  // namespace

Bfc::Bfc(Memory& memory, std::uint64_t limit_bytes, BfcGrowth growth)
    : memory_(memory),
      limit_(limit_bytes),
      growth_(growth),
      next_region_(
          rounded_up(growth == BfcGrowth::none ? limit_bytes : std::min(limit_bytes, kFirstRegion),
                     kUnit)),
      free_(&nodes_) {}

Bfc::~Bfc() {
  for (const Region& region : regions_) {
    if (growth_ == BfcGrowth::mapped) {
      memory_.unmap(region.address, region.bytes);
    } else {
      memory_.give_back(region.address, region.bytes);
    }
  }
  if (range_ != 0) memory_.unreserve(range_, limit_);
}

std::optional<BlockId> Bfc::allocate(std::uint64_t bytes, std::uint32_t, std::uint64_t align) {
  const std::uint64_t rounded = rounded_up(bytes, kUnit);
  align = std::max(align, kUnit);
  // What is found behind the alignment may begin that much later.
  const std::uint64_t needed = rounded + (align - kUnit);
  if (const auto block = find(rounded, bytes, align)) return block;
  if (extend(needed)) {
    if (const auto block = find(rounded, bytes, align)) return block;
  }
  if (growth_ == BfcGrowth::collected && collect(needed) && extend(needed))
    return find(rounded, bytes, align);
  return std::nullopt;
}

std::optional<BlockId> Bfc::find(std::uint64_t rounded,
                                 std::uint64_t requested,
                                 std::uint64_t align) {
  for (auto at = free_.lower_bound({rounded, 0, 0}); at != free_.end(); ++at) {
    const std::uint64_t padding = rounded_up(at->address, align) - at->address;
    if (at->bytes < rounded + padding) continue;
    BlockId id = at->id;
    free_.erase(at);
    if (padding > 0) {
      const BlockId aligned = chunks_.split(id, padding);
      insert_free(id);
      id = aligned;
    }
    const std::uint64_t size = chunks_[id].bytes;
    if (size >= 2 * rounded || size - rounded >= kMostWaste)
      insert_free(chunks_.split(id, rounded));
    chunks_[id].requested = requested;
    granted_ += chunks_[id].bytes;
    return id;
  }
  return std::nullopt;
}

void Bfc::release(BlockId block) {
  granted_ -= chunks_[block].bytes;
  chunks_[block].requested = 0;
  insert_free(merged(block));
}

void Bfc::insert_free(BlockId id) {
  free_.insert({chunks_[id].bytes, chunks_[id].address, id});
}

void Bfc::erase_free(BlockId id) {
  free_.erase({chunks_[id].bytes, chunks_[id].address, id});
}

BlockId Bfc::merged(BlockId id) {
  return chunks_.merged(
      id, [](BlockId) { return true; }, [&](BlockId neighbour) { erase_free(neighbour); });
}

bool Bfc::extend(std::uint64_t rounded) {
  const std::uint64_t unit = growth_ == BfcGrowth::mapped ? memory_.page_bytes() : kUnit;
  const std::uint64_t available = (limit_ - reserved_) / unit * unit;
  if (rounded > available) return false;
  bool grew = false;
  while (rounded > next_region_) {
    next_region_ *= 2;
    grew = true;
  }
  std::uint64_t bytes = rounded_up(std::min(next_region_, available), unit);
  Address address = more_memory(bytes);
  while (address == 0) {
    // The memory has less than the limit says.
    const auto less = static_cast<std::uint64_t>(static_cast<double>(bytes) * 0.9);
    bytes = std::min(rounded_up(less, unit), bytes - unit);
    if (bytes < rounded) return false;
    address = more_memory(bytes);
  }
  if (!grew) next_region_ *= 2;
  reserved_ += bytes;
  BlockId last = kNoBlock;
  if (growth_ == BfcGrowth::mapped && !regions_.empty()) {
    last = regions_.front().first;
    while (chunks_[last].next != kNoBlock) last = chunks_[last].next;
    regions_.front().bytes += bytes;
  }
  const BlockId id = chunks_.add({address, bytes, 0, last, kNoBlock});
  if (last != kNoBlock) {
    chunks_[last].next = id;
  } else {
    regions_.push_back({address, bytes, id});
  }
  insert_free(merged(id));
  return true;
}

Address Bfc::more_memory(std::uint64_t bytes) {
  if (growth_ != BfcGrowth::mapped) return memory_.take(bytes);
  if (range_ == 0) range_ = memory_.reserve(limit_);
  const Address end = range_ + reserved_;
  return range_ != 0 && memory_.map(end, bytes) ? end : 0;
}

bool Bfc::is_free(const Region& region) const {
  return chunks_.is_free(region.first) &&
         chunks_[region.first].next == kNoBlock;  // neighbours that are free are one
}

bool Bfc::collect(std::uint64_t rounded) {
  std::uint64_t collectable = 0;
  for (const Region& region : regions_) {
    if (is_free(region)) collectable += region.bytes;
  }
  if (collectable == 0 || rounded > limit_ - reserved_ + collectable) return false;
  give_back_free_regions();
  return true;
}

void Bfc::give_back_free_regions() {
  std::erase_if(regions_, [&](const Region& region) {
    if (!is_free(region)) return false;
    erase_free(region.first);
    chunks_.forget(region.first);
    memory_.give_back(region.address, region.bytes);
    reserved_ -= region.bytes;
    return true;
  });
}

void Bfc::trim() {
  if (growth_ == BfcGrowth::collected) give_back_free_regions();
}

Holding Bfc::holding() const {
  return {reserved_, granted_, reserved_ - granted_, free_.empty() ? 0 : free_.rbegin()->bytes};
}

void Bfc::for_each_part(const std::function<void(const Part&)>& visit) const {
  std::vector<Region> regions = regions_;
  std::ranges::sort(regions, {}, &Region::address);
  for (const Region& region : regions) {
    for (BlockId id = region.first; id != kNoBlock; id = chunks_[id].next)
      visit({chunks_[id].address, chunks_[id].bytes, chunks_[id].requested});
  }
}

}  // namespace launchgap::allocation
