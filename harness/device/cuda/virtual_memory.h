// The CUDA driver's virtual memory management.
#pragma once

#include <memory>

#include "harness/device/cuda/driver.h"
#include "harness/device/virtual_memory.h"

namespace launchgap::cuda {

/// Throws Unsupported where the driver or the GPU has none.
std::unique_ptr<VirtualMemory> make_virtual_memory(const Driver& driver, abi::Device device);

}  // namespace launchgap::cuda
