#include "harness/allocation/device_memory.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "harness/allocation/block_allocator.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::allocation {
namespace {

void* pointer_of(Address address) {
  return reinterpret_cast<void*>(address);
}
Address address_of(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

/// Every GPU's driver has it, and malloc has not.
constexpr std::uint64_t kRegionAlignment = 256;

/// A block allocator as programs use one. The block of an address is found in a hash map, as
/// TensorFlow and PyTorch find it: that belongs to the cost of giving it back.
class BlocksOfDevice : public Allocator {
 public:
  BlocksOfDevice(Device& device,
                 Stream& stream,
                 const BlockAllocatorInfo& info,
                 std::uint64_t limit_bytes)
      : info_(info),
        limit_(limit_bytes),
        memory_(device, stream),
        toucher_(device.allocator(stream, AllocatorKind::direct)),
        allocator_(info.make(memory_, limit_bytes)) {}

  void* allocate(std::size_t bytes) override {
    insert_delay();
    const std::optional<BlockId> block = allocator_->allocate(bytes, 0, kAlignment);
    if (!block) {
      throw OutOfMemory("launchgap",
                        std::string(info_.name),
                        0,
                        fmt::format("no room for {} bytes below the limit of {}", bytes, limit_),
                        false);
    }
    void* const pointer = pointer_of(allocator_->address(*block));
    blocks_.emplace(pointer, *block);
    return pointer;
  }
  void release(void* address, std::size_t) override {
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) throw Error("there is no such block to give back");
    allocator_->release(block->second);
    blocks_.erase(block);
  }
  void trim() override { allocator_->trim(); }
  void touch(void* address, std::size_t bytes) override { toucher_->touch(address, bytes); }
  std::string method() const override {
    return fmt::format("{}, over the direct allocator and virtual memory, of at most {} MiB",
                       info_.about,
                       limit_ >> 20);
  }

 private:
  static constexpr std::uint64_t kAlignment = 256;

  const BlockAllocatorInfo& info_;
  std::uint64_t limit_;
  DeviceMemory memory_;
  std::unique_ptr<Allocator> toucher_;
  std::unique_ptr<BlockAllocator> allocator_;
  std::unordered_map<void*, BlockId> blocks_;
};

}  // namespace

DeviceMemory::DeviceMemory(Device& device, Stream& stream)
    : device_(device), direct_(device.allocator(stream, AllocatorKind::direct)) {}

Address DeviceMemory::take(std::uint64_t bytes) {
  try {
    const Address address = address_of(direct_->allocate(bytes));
    if (address % kRegionAlignment == 0) return address;
    direct_->release(pointer_of(address), bytes);
    const Address begin = address_of(direct_->allocate(bytes + kRegionAlignment));
    const Address region = rounded_up(begin, kRegionAlignment);
    begins_[region] = begin;
    return region;
  } catch (const OutOfMemory&) {
    return 0;
  }
}

void DeviceMemory::give_back(Address region, std::uint64_t bytes) {
  const auto begin = begins_.find(region);
  if (begin == begins_.end()) {
    direct_->release(pointer_of(region), bytes);
    return;
  }
  direct_->release(pointer_of(begin->second), bytes + kRegionAlignment);
  begins_.erase(begin);
}

VirtualMemory& DeviceMemory::pages() {
  if (!pages_) {
    pages_ = device_.virtual_memory();
    if (kPageBytes % pages_->granularity() != 0) {
      const std::size_t granularity = pages_->granularity();
      pages_.reset();
      throw Unsupported(
          "the device maps {} bytes at once, which {} are no multiple of", granularity, kPageBytes);
    }
  }
  return *pages_;
}

Address DeviceMemory::reserve(std::uint64_t bytes) {
  try {
    return address_of(pages().reserve(rounded_up(bytes, kPageBytes)));
  } catch (const OutOfMemory&) {
    return 0;
  }
}

void DeviceMemory::unreserve(Address range, std::uint64_t bytes) {
  pages().unreserve(pointer_of(range), rounded_up(bytes, kPageBytes));
}

/// Page by page where PyTorch's large blocks are, since any of those may be unmapped alone;
/// otherwise at once.
bool DeviceMemory::map(Address from, std::uint64_t bytes) {
  const std::uint64_t step = bytes % kLargePageBytes == 0 ? kLargePageBytes : bytes;
  std::uint64_t mapped = 0;
  try {
    for (; mapped < bytes; mapped += step) pages().map(pointer_of(from + mapped), step);
    return true;
  } catch (const OutOfMemory&) {
    if (mapped > 0) pages().unmap(pointer_of(from), mapped);
    return false;
  }
}

void DeviceMemory::unmap(Address from, std::uint64_t bytes) {
  pages().unmap(pointer_of(from), bytes);
}

std::vector<std::string> allocators_of(const DeviceFacts& facts) {
  std::vector<std::string> names;
  for (const AllocatorKindInfo& info : allocator_kinds()) {
    if (!(is_gpu(facts) ? info.on_gpu : info.on_host).empty()) names.emplace_back(info.name);
  }
  for (const BlockAllocatorInfo& info : block_allocators()) names.emplace_back(info.name);
  return names;
}

bool is_block_allocator(std::string_view name) {
  return std::ranges::find(block_allocators(), name, &BlockAllocatorInfo::name) !=
         block_allocators().end();
}

std::uint64_t most_bytes_of(std::string_view name) {
  const std::optional<AllocatorKind> kind = allocator_kind_named(name);
  return kind ? info_of(*kind).most_bytes : ~std::uint64_t{0};
}

std::unique_ptr<Allocator> allocator_named(Device& device,
                                           Stream& stream,
                                           std::string_view name,
                                           std::uint64_t limit_bytes) {
  if (const std::optional<AllocatorKind> kind = allocator_kind_named(name))
    return device.allocator(stream, *kind);
  const BlockAllocatorInfo& info = block_allocator_named(name);
  const std::uint64_t limit = std::min(limit_bytes, allocatable_bytes(device)) >> 21 << 21;
  if (limit == 0) throw Unsupported("there is no memory free");
  return std::make_unique<BlocksOfDevice>(device, stream, info, limit);
}

}  // namespace launchgap::allocation
