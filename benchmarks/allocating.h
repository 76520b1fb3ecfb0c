// What the benchmarks of the allocation family share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/allocation/device_memory.h"
#include "harness/measure/benchmark.h"

namespace launchgap {

inline constexpr const char* kAllocatorMeaning =
    "the call that allocates, or what it allocates from";

/// All that the device may have, in every profile but the quick one.
std::vector<std::string> all_allocators(Profile profile, const DeviceFacts& facts);

/// Everything but the quick profile, which has the first three allocators alone.
bool beyond_quick(Profile profile, const DeviceFacts& facts, const CaseName& name);

/// Of so many live blocks of that size. Throws Unsupported where that is more than a quarter of
/// what is free, or than may be taken.
std::unique_ptr<Allocator> allocator_of_case(const CaseContext& context,
                                             Stream& stream,
                                             std::size_t bytes,
                                             std::size_t blocks);

/// A block with a value at both of its ends.
struct MarkedBlock {
  void* address = nullptr;
  std::size_t bytes = 0;
  unsigned char value = 0;

  /// Enqueues the marking.
  void mark(Stream& stream) const;
  /// Throws WrongResult if somebody wrote there. The stream was waited for.
  void check(Device& device) const;
};

/// Throws WrongResult if two of them overlap.
void check_apart(const std::vector<MarkedBlock>& blocks);

}  // namespace launchgap
