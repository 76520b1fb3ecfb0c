#include "harness/investigate/moved_part.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/stats/stats.h"

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

namespace {

constexpr std::size_t kFewest = 10;
constexpr std::size_t kOneIn = 20;
constexpr double kHalf = 0.5;
/// Below this share the slowest samples are the upper end of what is usual, and no event.
constexpr double kLeastExcess = 0.05;

struct Means {
  double value = 0, range_ns = 0;
  std::array<double, kParts> parts_ns{};

  explicit Means(std::span<const Observation> observations) {
    for (const Observation& one : observations) {
      value += one.value;
      range_ns += static_cast<double>(one.range_ns);
      for (std::size_t i = 0; i < kParts; ++i) parts_ns[i] += static_cast<double>(one.parts_ns[i]);
    }
    const auto count = static_cast<double>(observations.size());
    value /= count;
    range_ns /= count;
    for (double& part : parts_ns) part /= count;
  }
};

/// Whether at least half of some are longer than nine in ten of the others.
bool are_longer(std::span<const Observation> some, std::span<const Observation> others) {
  constexpr double kNineInTen = 0.9;
  std::vector<double> ranges;
  ranges.reserve(others.size());
  for (const Observation& one : others) ranges.push_back(static_cast<double>(one.range_ns));
  std::ranges::sort(ranges);
  const double usual = stats::quantile(ranges, kNineInTen).value_or(0);
  const auto longer = std::ranges::count_if(
      some, [&](const Observation& one) { return static_cast<double>(one.range_ns) > usual; });
  return 2 * static_cast<std::size_t>(longer) >= some.size();
}

/// The part that is longest beyond the others' mean.
Part longest_excess(const Observation& one, const std::array<double, kParts>& usual) {
  std::array<double, kParts> excess{};
  for (std::size_t i = 0; i < kParts; ++i)
    excess[i] = static_cast<double>(one.parts_ns[i]) - usual[i];
  return static_cast<Part>(std::ranges::max_element(excess) - excess.begin());
}

}  // namespace

std::optional<SlowestSamples> compare_slowest(std::vector<Observation> observations) {
  if (observations.size() < kFewest) return std::nullopt;
  std::ranges::stable_sort(observations, std::ranges::greater(), &Observation::value);
  SlowestSamples result;
  result.slowest = std::max<std::size_t>(1, observations.size() / kOneIn);
  result.others = observations.size() - result.slowest;
  const std::span<const Observation> all(observations);
  const auto slowest = all.first(result.slowest), others = all.subspan(result.slowest);
  const Means slow(slowest), usual(others);
  result.value_slowest = slow.value;
  result.value_others = usual.value;
  result.range_slowest_ns = slow.range_ns;
  result.range_others_ns = usual.range_ns;
  result.slowest_ns = slow.parts_ns;
  result.others_ns = usual.parts_ns;

  if (slow.value < (1 + kLeastExcess) * usual.value) {
    result.why_none = fmt::format("the slowest take {} more than the others, which is no event",
                                  percent_text(slow.value / usual.value - 1));
    return result;
  }
  if (result.difference_ns() <= 0 || !are_longer(slowest, others)) {
    result.why_none = "in the report the slowest samples are not the longer ones";
    return result;
  }
  Part largest = Part::overhead;
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (result.difference_ns(part) > result.difference_ns(largest)) largest = part;
  }
  result.with_this =
      static_cast<std::size_t>(std::ranges::count_if(slowest, [&](const Observation& one) {
        return longest_excess(one, usual.parts_ns) == largest;
      }));
  const double share = result.difference_ns(largest) / result.difference_ns();
  if (share < kHalf) {
    result.why_none = fmt::format("no part makes half of the difference: the largest, {}, makes {}",
                                  info_of(largest).name,
                                  percent_text(share));
  } else if (2 * result.with_this < result.slowest) {
    result.why_none = fmt::format("{} makes {} of the difference, but in {} of the {} samples only",
                                  info_of(largest).name,
                                  percent_text(share),
                                  result.with_this,
                                  result.slowest);
  } else {
    result.moved = largest;
  }
  return result;
}

}  // namespace launchgap::investigate
