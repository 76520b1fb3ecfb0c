#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/bfc.h"
#include "harness/allocation/caching.h"
#include "harness/core/errors.h"

namespace launchgap::allocation {
namespace {

template <class Allocator, auto form>
std::unique_ptr<BlockAllocator> make(Memory& memory, std::uint64_t limit_bytes) {
  return std::make_unique<Allocator>(memory, limit_bytes, form);
}

constexpr auto kAllocators = std::to_array<BlockAllocatorInfo>({
    {"bfc",
     "TensorFlow's best fit with coalescing, in one region of the whole limit, as it is by default",
     make<Bfc, BfcGrowth::none>},
    {"bfc_growth",
     "the same with regions of 2 MiB and then each twice as large: allow_growth",
     make<Bfc, BfcGrowth::regions>},
    {"bfc_growth_gc",
     "the same; regions that are free as a whole are given back where nothing fits",
     make<Bfc, BfcGrowth::collected>},
    {"bfc_vmm",
     "the same, with regions mapped one behind the other, so that free blocks merge across them",
     make<Bfc, BfcGrowth::mapped>},
    {"caching",
     "PyTorch's caching allocator: segments of 2 MiB, of 20 MiB and of their own",
     make<Caching, CachingSegments::fixed>},
    {"caching_expandable",
     "the same with expandable_segments: ranges of addresses that grow page by page",
     make<Caching, CachingSegments::expandable>},
});

}  // namespace

std::span<const BlockAllocatorInfo> block_allocators() {
  return kAllocators;
}

const BlockAllocatorInfo& block_allocator_named(std::string_view name) {
  const auto found = std::ranges::find(kAllocators, name, &BlockAllocatorInfo::name);
  if (found != kAllocators.end()) return *found;
  std::vector<std::string_view> names;
  for (const BlockAllocatorInfo& one : kAllocators) names.push_back(one.name);
  throw UsageError("there is no allocator '{}': there are {}", name, fmt::join(names, ", "));
}

}  // namespace launchgap::allocation
