// What the fake driver's ways to get memory share.
#pragma once

#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {

inline DevicePointer address_of(const Block& block) {
  return static_cast<DevicePointer>(block.range().begin);
}

/// Tells who listens that the call allocated or freed `block`.
void report(Call& call, const Block& block, MemoryEvent event);

/// Whether the device has so much left, once the pools have given back what nobody uses.
bool makes_room(Process& process, Context& context, std::size_t bytes);

/// Fresh device memory, accounted; null when the device or the host has no more.
BlockPointer allocate(Process& process, Context& context, std::size_t bytes);

}  // namespace launchgap::fake
