// Operands that the device makes in its own memory, and that the host can recompute.
#pragma once

#include <cstdint>

#include "harness/device/device.h"
#include "kernels/element.h"

namespace launchgap {

/// Fills a whole buffer with elements of `type` by the fill kernel, on the stream.
void fill(Device& device,
          Stream& stream,
          const Buffer& buffer,
          std::uint64_t seed,
          kernels::ElementType type,
          kernels::Distribution distribution,
          std::uint64_t step = 1);

}  // namespace launchgap
