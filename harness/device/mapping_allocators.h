// Allocators that map memory to addresses themselves, the same over any device.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/allocator.h"

namespace launchgap {

/// Writes a whole block, and waits.
using Touch = std::function<void(void* address, std::size_t bytes)>;

/// AllocatorKind::vmm.
std::unique_ptr<Allocator> mapping_allocator(std::unique_ptr<VirtualMemory> memory, Touch touch);

/// AllocatorKind::vmm_expand, in a range of `range_bytes`. `may_take` says how much more memory may
/// be mapped now: it is asked when what it said before is used up.
std::unique_ptr<Allocator> expanding_allocator(std::unique_ptr<VirtualMemory> memory,
                                               Touch touch,
                                               std::uint64_t range_bytes,
                                               std::function<std::uint64_t()> may_take);

}  // namespace launchgap
