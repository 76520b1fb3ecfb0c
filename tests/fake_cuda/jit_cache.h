// The cache in which the driver keeps what it compiled from PTX.
#pragma once

#include "tests/fake_cuda/node.h"

namespace launchgap::fake {

/// Whether the cache has the PTX compiled for this device and driver; if not, now it does, as far
/// as there is one: the folder CUDA_CACHE_PATH unless CUDA_CACHE_DISABLE is 1. One that cannot be
/// written is not used and nobody is told.
bool cached_by_jit(const char* ptx, const DeviceDescription& device, int driver_version);

}  // namespace launchgap::fake
