// Allocators that map memory to addresses themselves, the same over any device.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/allocator.h"
#include "harness/device/virtual_memory.h"

namespace launchgap {

/// Writes a whole block, and waits.
using Touch = std::function<void(void* address, std::size_t bytes)>;

/// AllocatorKind::vmm.
std::unique_ptr<Allocator> mapping_allocator(std::unique_ptr<VirtualMemory> memory, Touch touch);

/// AllocatorKind::vmm_expand, in a range of at most `most_bytes`.
std::unique_ptr<Allocator> expanding_allocator(std::unique_ptr<VirtualMemory> memory,
                                               Touch touch,
                                               std::uint64_t most_bytes);

}  // namespace launchgap
