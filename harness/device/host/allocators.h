// The host's ways to get memory.
#pragma once

#include <memory>

#include "harness/device/allocator.h"

namespace launchgap::host {

/// Throws Unsupported for a kind that the host does not have.
std::unique_ptr<Allocator> make_allocator(AllocatorKind kind, Device& device);

// --- The host's addresses and pages ---

std::unique_ptr<VirtualMemory> make_virtual_memory();

}  // namespace launchgap::host
