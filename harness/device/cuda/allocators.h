// The CUDA driver's ways to get memory.
#pragma once

#include <memory>

#include "harness/device/allocator.h"
#include "harness/device/cuda/stream.h"

namespace launchgap::cuda {

/// Throws Unsupported for a kind that GPUs, or this GPU's driver, do not have.
std::unique_ptr<Allocator> make_allocator(const Driver& driver,
                                          CudaStream& stream,
                                          abi::Device device,
                                          AllocatorKind kind,
                                          launchgap::Device& of);

}  // namespace launchgap::cuda
