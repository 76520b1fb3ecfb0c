// The memory of a device, as what block allocators cut their regions from.
#pragma once

#include <memory>
#include <unordered_map>

#include "harness/allocation/memory.h"
#include "harness/device/allocator.h"
#include "harness/device/device.h"

namespace launchgap::allocation {

/// Regions by the device's direct allocator, and pages by its virtual memory.
class DeviceMemory : public Memory {
 public:
  /// Without virtual memory where the device has none: then nothing can be reserved.
  DeviceMemory(Device& device, Stream& stream);

  Address take(std::uint64_t bytes) override;
  void give_back(Address region, std::uint64_t bytes) override;

  std::uint64_t page_bytes() const override { return kPageBytes; }
  /// Throws Unsupported where the device has no virtual memory.
  Address reserve(std::uint64_t bytes) override;
  void unreserve(Address range, std::uint64_t bytes) override;
  bool map(Address from, std::uint64_t bytes) override;
  void unmap(Address from, std::uint64_t bytes) override;

 private:
  /// TensorFlow's and PyTorch's page, and of PyTorch's large blocks.
  static constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t kLargePageBytes = std::uint64_t{20} << 20;

  VirtualMemory& pages();

  Device& device_;
  std::unique_ptr<Allocator> direct_;
  std::unique_ptr<VirtualMemory> pages_;  // once it is needed
  std::unordered_map<Address, Address>
      begins_;  // of regions that begin behind what they were given
};

/// Every allocator that a device may have, by the names of the axis `allocator`: those of its kind,
/// then launchgap's own (block_allocators()).
std::vector<std::string> allocators_of(const DeviceFacts& facts);
bool is_block_allocator(std::string_view name);
/// Of one block, for what must stay small.
std::uint64_t most_bytes_of(std::string_view name);

/// One of them. launchgap's own take at most `limit_bytes`. Throws Unsupported, with the reason,
/// where the device or its driver has none.
std::unique_ptr<Allocator> allocator_named(Device& device,
                                           Stream& stream,
                                           std::string_view name,
                                           std::uint64_t limit_bytes);

}  // namespace launchgap::allocation
