// Which CPU a run's launching thread gets.
#pragma once

#include <vector>

#include "harness/core/cpus.h"
#include "harness/device/facts.h"

namespace launchgap {

/// The CPUs near a device, of those that this process may use; all of these where the machine does
/// not say what is near.
CpuList near_cpus(const DeviceFacts& device);

/// One CPU for a launching thread: of `near`, else of `allowed`, the last that is not in `taken`,
/// since the first ones serve most interrupts. The last of `allowed` where all are taken. `near` is
/// part of `allowed`, which is not empty.
int free_cpu(const CpuList& near, const CpuList& allowed, const std::vector<int>& taken);

}  // namespace launchgap
