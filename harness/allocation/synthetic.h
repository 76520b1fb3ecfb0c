// A trace like that of a training job.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/allocation/trace.h"

namespace launchgap::allocation {

/// So many allocations, with the sizes, lifetimes and pace of the PyTorch profiler's trace of a
/// V100 that docs/allocation.md names: 59 % are at most 1 MiB, half live for at most 12 events and
/// a tenth for more than 3,644, and 12 % are freed by the other of two threads. The same seed gives
/// the same trace on every machine. It is made as it is read.
std::unique_ptr<Trace> synthetic_training(std::uint64_t allocations,
                                          std::uint64_t steps,
                                          std::uint64_t seed);

}  // namespace launchgap::allocation
