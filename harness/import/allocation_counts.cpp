#include "harness/import/allocation_counts.h"

#include <algorithm>
#include <unordered_map>

namespace launchgap::recording {

AllocationCounts count_allocations(const Process& process, std::uint64_t gpu) {
  std::vector<const Allocation*> in_order;
  for (const Allocation& one : process.allocations) {
    if (one.gpu == gpu) in_order.push_back(&one);
  }
  std::ranges::stable_sort(in_order, {}, &Allocation::at_ns);
  AllocationCounts counts;
  std::unordered_map<std::uint64_t, std::uint64_t> live;  // bytes, by address
  for (const Allocation* one : in_order) {
    const auto known = live.find(one->address);
    if (one->action == AllocationAction::fail) ++counts.failures;
    if (one->action == AllocationAction::release) {
      if (known == live.end()) {
        ++counts.unseen;
        continue;
      }
      ++counts.releases;
      counts.live_at_end_bytes -= known->second;
      live.erase(known);
    }
    if (one->action == AllocationAction::allocate) {
      if (known != live.end()) {
        ++counts.missing;
        counts.live_at_end_bytes -= known->second;
      }
      ++counts.allocations;
      live[one->address] = one->bytes;
      counts.live_at_end_bytes += one->bytes;
      counts.most_live_bytes = std::max(counts.most_live_bytes, counts.live_at_end_bytes);
    }
  }
  return counts;
}

}  // namespace launchgap::recording
