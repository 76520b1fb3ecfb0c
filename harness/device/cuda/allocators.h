// The CUDA driver's ways to get memory.
#pragma once

#include <memory>

#include "harness/device/allocator.h"
#include "harness/device/cuda/driver.h"
#include "harness/device/cuda/stream.h"

namespace launchgap::cuda {

/// Throws Unsupported for a kind that GPUs, or this GPU's driver, do not have.
std::unique_ptr<Allocator> make_allocator(const Driver& driver,
                                          CudaStream& stream,
                                          abi::Device device,
                                          AllocatorKind kind,
                                          launchgap::Device& of);

// --- The CUDA driver's virtual memory management ---

/// Throws Unsupported where the driver or the GPU has none.
std::unique_ptr<VirtualMemory> make_virtual_memory(const Driver& driver, abi::Device device);

}  // namespace launchgap::cuda
