#include "harness/device/allocator.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/inserted_delay.h"

namespace launchgap {
namespace {

constexpr auto kKinds = std::to_array<AllocatorKindInfo>({
    {AllocatorKind::direct, "direct", "`cuMemAlloc`, `cuMemFree`", "`malloc`, `free`"},
    {AllocatorKind::mapped, "mapped", "", "`mmap`, `munmap`, private anonymous pages"},
    {AllocatorKind::pool,
     "pool",
     "`cuMemAllocAsync`, `cuMemFreeAsync` on the default pool, told to keep what is freed",
     "`std::pmr::unsynchronized_pool_resource`; `method` names the block size up to which it "
     "pools, and beyond that `operator new` serves"},
    {AllocatorKind::pool_t0,
     "pool_t0",
     "the same, told to keep nothing (release threshold 0, the driver's default)",
     ""},
    {AllocatorKind::pool_own,
     "pool_own",
     "`cuMemAllocFromPoolAsync`, `cuMemFreeAsync` on a pool of its own, told to keep what is freed",
     ""},
    {AllocatorKind::vmm,
     "vmm",
     "for each block addresses and memory of its own: `cuMemAddressReserve`, `cuMemCreate`, "
     "`cuMemMap`, `cuMemSetAccess`; `cuMemUnmap`, `cuMemAddressFree`",
     "for each block pages of its own: `mmap` without access, `mprotect`; `madvise`, `munmap`"},
    {AllocatorKind::vmm_expand,
     "vmm_expand",
     "one range of addresses, to whose end memory is mapped in chunks of 20 MiB; what is given "
     "back is used again once all behind it is given back too",
     "the same"},
    {.kind = AllocatorKind::host_pinned,
     .name = "host_pinned",
     .on_gpu = "`cuMemHostAlloc`, `cuMemFreeHost`",
     .on_host = "",
     .in_host_memory = true},
    {.kind = AllocatorKind::host_register,
     .name = "host_register",
     .on_gpu = "`aligned_alloc` and `cuMemHostRegister`; `cuMemHostUnregister` and `free`",
     .on_host = "",
     .in_host_memory = true},
    {AllocatorKind::managed,
     "managed",
     "`cuMemAllocManaged`, `cuMemFree`; blocks of at most 64 MiB",
     "",
     std::uint64_t{64} << 20},
});

}  // namespace

std::span<const AllocatorKindInfo> allocator_kinds() {
  return kKinds;
}

const AllocatorKindInfo& info_of(AllocatorKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<AllocatorKind> allocator_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &AllocatorKindInfo::name);
  return found == kKinds.end() ? std::nullopt : std::optional(found->kind);
}

std::uint64_t allocatable_bytes(Device& device) {
  const std::uint64_t free = device.free_memory_bytes();
  const std::uint64_t kept = device.facts().memory_bytes.value_or(free) / 20;
  return free > kept ? free - kept : 0;
}

namespace {

constexpr std::size_t kChunkBytes = std::size_t{20} << 20;  // as PyTorch's expandable segments

class MappingAllocator : public Allocator {
 public:
  MappingAllocator(std::unique_ptr<VirtualMemory> memory, Touch touch)
      : memory_(std::move(memory)), touch_(std::move(touch)), page_(memory_->granularity()) {}

  void* allocate(std::size_t bytes) override {
    insert_delay();
    const std::size_t whole = rounded_up(bytes, page_);
    void* const range = memory_->reserve(whole);
    try {
      memory_->map(range, whole);
    } catch (...) {
      memory_->unreserve(range, whole);
      throw;
    }
    return range;
  }
  void release(void* address, std::size_t bytes) override {
    const std::size_t whole = rounded_up(bytes, page_);
    memory_->unmap(address, whole);
    memory_->unreserve(address, whole);
  }
  void touch(void* address, std::size_t bytes) override { touch_(address, bytes); }
  std::optional<std::uint64_t> granted_bytes(std::size_t bytes) const override {
    return rounded_up(bytes, page_);
  }
  std::string method() const override {
    return fmt::format("addresses and memory mapped for each block, in pages of {} bytes", page_);
  }

 private:
  std::unique_ptr<VirtualMemory> memory_;
  Touch touch_;
  std::size_t page_;
};

class ExpandingAllocator : public Allocator {
 public:
  ExpandingAllocator(std::unique_ptr<VirtualMemory> memory,
                     Touch touch,
                     std::uint64_t range_bytes,
                     std::function<std::uint64_t()> may_take)
      : memory_(std::move(memory)),
        touch_(std::move(touch)),
        may_take_(std::move(may_take)),
        chunk_(rounded_up(kChunkBytes, memory_->granularity())),
        range_bytes_(range_bytes / chunk_ * chunk_),
        most_mapped_(may_take_()) {
    if (range_bytes_ == 0) throw Unsupported("less memory is free than one chunk");
    range_ = static_cast<char*>(memory_->reserve(range_bytes_));
  }
  ~ExpandingAllocator() override {
    try {
      if (mapped_ > 0) memory_->unmap(range_, mapped_);
      memory_->unreserve(range_, range_bytes_);
    } catch (const Error&) {  // whatever failed, failed before, and was told of then
    }
  }

  void* allocate(std::size_t bytes) override {
    insert_delay();
    const std::size_t begin = blocks_.empty() ? 0 : blocks_.back().end;
    if (bytes > range_bytes_ - begin)
      throw OutOfMemory("launchgap", "vmm_expand", 0, "the range of addresses is used up", false);
    const std::size_t end = std::min(rounded_up(begin + bytes, kAlignment), range_bytes_);
    const std::size_t needed = rounded_up(end, chunk_);
    if (needed > most_mapped_) most_mapped_ = mapped_ + may_take_();
    if (needed > most_mapped_)
      throw OutOfMemory("launchgap", "vmm_expand", 0, "too little memory is free", false);
    while (mapped_ < end) {
      memory_->map(range_ + mapped_, chunk_);
      mapped_ += chunk_;
    }
    blocks_.push_back({begin, end, true});
    return range_ + begin;
  }
  void release(void* address, std::size_t) override {
    const auto begin = static_cast<std::size_t>(static_cast<char*>(address) - range_);
    const auto block = std::ranges::lower_bound(blocks_, begin, {}, &Block::begin);
    if (block == blocks_.end() || block->begin != begin || !block->live)
      throw Error("vmm_expand has no such block to give back");
    block->live = false;
    while (!blocks_.empty() && !blocks_.back().live) blocks_.pop_back();
  }
  void touch(void* address, std::size_t bytes) override { touch_(address, bytes); }
  /// The chunks behind the last block that is live.
  void trim() override {
    const std::size_t kept = rounded_up(blocks_.empty() ? 0 : blocks_.back().end, chunk_);
    if (mapped_ <= kept) return;
    memory_->unmap(range_ + kept, mapped_ - kept);
    mapped_ = kept;
  }
  std::optional<std::uint64_t> reserved_bytes() const override { return mapped_; }
  std::string method() const override {
    return fmt::format(
        "one range of {} MiB, mapped in chunks of {} MiB; what is given back is "
        "used again once all behind it is",
        range_bytes_ >> 20,
        chunk_ >> 20);
  }

 private:
  static constexpr std::size_t kAlignment = 256;
  struct Block {
    std::size_t begin, end;
    bool live;
  };

  std::unique_ptr<VirtualMemory> memory_;
  Touch touch_;
  std::function<std::uint64_t()> may_take_;
  std::size_t chunk_, range_bytes_;
  std::uint64_t most_mapped_;
  char* range_ = nullptr;
  std::size_t mapped_ = 0;
  std::vector<Block> blocks_;  // by address; the last one is live
};

}  // namespace

std::unique_ptr<Allocator> mapping_allocator(std::unique_ptr<VirtualMemory> memory, Touch touch) {
  return std::make_unique<MappingAllocator>(std::move(memory), std::move(touch));
}

std::unique_ptr<Allocator> expanding_allocator(std::unique_ptr<VirtualMemory> memory,
                                               Touch touch,
                                               std::uint64_t range_bytes,
                                               std::function<std::uint64_t()> may_take) {
  return std::make_unique<ExpandingAllocator>(
      std::move(memory), std::move(touch), range_bytes, std::move(may_take));
}

}  // namespace launchgap
