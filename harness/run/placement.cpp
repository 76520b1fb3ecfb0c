#include "harness/run/placement.h"

#include <algorithm>
#include <iterator>

namespace launchgap {

CpuList near_cpus(const DeviceFacts& device) {
  const CpuList allowed = allowed_cpus();
  CpuList near;
  if (const auto of_node = cpus_of_numa_node(device.numa_node.value_or(-1)))
    std::ranges::set_intersection(*of_node, allowed, std::back_inserter(near));
  return near.empty() ? allowed : near;
}

int free_cpu(const CpuList& near, const CpuList& allowed, const std::vector<int>& taken) {
  for (const CpuList* candidates : {&near, &allowed}) {
    for (auto cpu = candidates->rbegin(); cpu != candidates->rend(); ++cpu) {
      if (std::ranges::find(taken, *cpu) == taken.end()) return *cpu;
    }
  }
  return allowed.back();
}

}  // namespace launchgap
