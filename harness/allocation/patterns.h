// Traces that are made: patterns that fragment memory in known ways, and one that resembles a
// training job.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "harness/allocation/trace.h"
#include "harness/core/case_name.h"

namespace launchgap::allocation {

struct PatternParameter {
  std::string_view name;
  std::uint64_t usual;
  std::uint64_t least, most;
  std::string_view about;
};

struct PatternInfo {
  std::string_view name;
  std::string_view about;
  std::span<const PatternParameter> parameters;
};

/// All of them, in the order in which they are shown.
std::span<const PatternInfo> patterns();

/// "checkerboard/blocks:64"; what is not named has its usual value. `seed` is for those that are
/// random. Throws UsageError that says what there is.
std::unique_ptr<Trace> make_pattern(const CaseName& name, std::uint64_t seed);

// --- A trace like that of a training job ---

/// So many allocations, with the sizes, lifetimes and pace of the PyTorch profiler's trace of a
/// V100 that docs/allocation.md names: 59 % are at most 1 MiB, half live for at most 12 events and
/// a tenth for more than 3,644, and 12 % are freed by the other of two threads. The same seed gives
/// the same trace on every machine. It is made as it is read.
std::unique_ptr<Trace> synthetic_training(std::uint64_t allocations,
                                          std::uint64_t steps,
                                          std::uint64_t seed);

}  // namespace launchgap::allocation
