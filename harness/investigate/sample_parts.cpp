#include "harness/investigate/sample_parts.h"

#include <algorithm>

namespace launchgap::investigate {
namespace {

constexpr PartInfo kInfos[kParts] = {
    {"in_overhead_ns", "the overhead", "the tool, or the driver for it, took time of its own"},
    {"in_call_ns", "the call", "the thread was in a call of CUDA that does not wait"},
    {"in_kernel_ns", "the kernel", "what the sample launched was running, and no call was"},
    {"in_queue_ns", "the queue", "the call had returned, and what it launched had not begun"},
    {"in_wait_ns", "the wake-up", "the thread still waited, and nothing of the sample was running"},
    {"in_program_ns", "the program", "none of these: the thread was outside of CUDA"},
};

struct Edge {
  std::int64_t at_ns;
  Part part;
  int change;
};

}  // namespace

const PartInfo& info_of(Part part) {
  return kInfos[static_cast<std::size_t>(part)];
}

PartTimes divide(std::int64_t begin_ns, std::int64_t end_ns, std::span<const Activity> activities) {
  std::vector<Edge> edges;
  edges.reserve(2 * activities.size() + 1);
  for (const Activity& activity : activities) {
    const std::int64_t from = std::max(activity.begin_ns, begin_ns);
    const std::int64_t to = std::min(activity.end_ns, end_ns);
    if (from >= to) continue;
    edges.push_back({from, activity.part, 1});
    edges.push_back({to, activity.part, -1});
  }
  std::ranges::sort(edges, {}, &Edge::at_ns);
  PartTimes times{};
  std::array<int, kParts> going_on{};
  going_on[static_cast<std::size_t>(Part::program)] = 1;
  std::int64_t at_ns = begin_ns;
  const auto advance = [&](std::int64_t to_ns) {
    const auto first = std::ranges::find_if(going_on, [](int count) { return count > 0; });
    times[static_cast<std::size_t>(first - going_on.begin())] += to_ns - at_ns;
    at_ns = to_ns;
  };
  for (const Edge& edge : edges) {
    advance(edge.at_ns);
    going_on[static_cast<std::size_t>(edge.part)] += edge.change;
  }
  advance(std::max(at_ns, end_ns));
  return times;
}

}  // namespace launchgap::investigate
