// The host's addresses and pages.
#pragma once

#include <memory>

#include "harness/device/virtual_memory.h"

namespace launchgap::host {

std::unique_ptr<VirtualMemory> make_virtual_memory();

}  // namespace launchgap::host
