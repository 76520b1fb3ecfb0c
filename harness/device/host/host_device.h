// The CPU as a device: a stream is a worker thread, matmul is OpenBLAS, convolution oneDNN, memory
// the system's. It is what a program runs on when its GPU is not usable, and makes the whole suite
// run on any machine.
#pragma once

#include <memory>

#include "harness/device/allocator.h"
#include "harness/device/backend.h"

namespace launchgap::host {

const Backend& backend();

// --- The host's ways to get memory ---

/// Throws Unsupported for a kind that the host does not have.
std::unique_ptr<Allocator> make_allocator(AllocatorKind kind, Device& device);

// --- The host's addresses and pages ---

std::unique_ptr<VirtualMemory> make_virtual_memory();

}  // namespace launchgap::host
