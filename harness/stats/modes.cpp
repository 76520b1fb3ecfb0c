#include "harness/stats/modes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "harness/stats/dip.h"

namespace launchgap::stats {
namespace {

constexpr std::size_t kFewest = 40, kMost = 2000;
constexpr double kLeastShare = 0.04;

/// At most kMost of the values: one from anywhere in each of as many stretches of time. Every k-th
/// could be in step with something that happens every k-th time. The same ones each time.
std::vector<double> thinned(std::span<const double> in_order) {
  const std::size_t n = in_order.size();
  if (n <= kMost) return {in_order.begin(), in_order.end()};
  std::vector<double> some(kMost);
  std::minstd_rand random;
  for (std::size_t i = 0; i < kMost; ++i) {
    const std::size_t first = i * n / kMost, end = (i + 1) * n / kMost;
    some[i] = in_order[first + random() % (end - first)];
  }
  return some;
}

/// A value and how often it is there.
struct Tick {
  double value;
  std::size_t count;
  double gap;  // to the value before or the one after, whichever is further
};

std::vector<Tick> ticks_of(std::span<const double> sorted) {
  std::vector<Tick> ticks;
  for (const double value : sorted) {
    if (!ticks.empty() && ticks.back().value == value) {
      ++ticks.back().count;
      continue;
    }
    const double gap = ticks.empty() ? 0 : value - ticks.back().value;
    if (!ticks.empty()) ticks.back().gap = std::max(ticks.back().gap, gap);
    ticks.push_back({value, 1, gap});
  }
  return ticks;
}

/// The distance between the ticks of the clock that the values were read from: the gap that only 5 %
/// of them fall short of. The further gap, since a clock of 24 MHz in whole nanoseconds gives 41 and
/// 42, 83 and 84; 5 %, since single values between the ticks must not hide them.
double resolution(std::vector<Tick> ticks, std::size_t values) {
  std::ranges::sort(ticks, {}, &Tick::gap);
  std::size_t seen = 0;
  for (const Tick& tick : ticks) {
    seen += tick.count;
    if (20 * seen >= values) return tick.gap;
  }
  return 0;
}

/// Spreads the values of each tick evenly over what was rounded to it: to half way to the next ticks,
/// which need not be the same on both sides (a rate is the inverse of a time). Otherwise each tick
/// would be a mode.
void spread_ties(std::vector<double>& sorted) {
  const std::vector<Tick> ticks = ticks_of(sorted);
  const double width = resolution(ticks, sorted.size());
  const auto reach = [width](double distance) { return std::min(distance / 2, 0.75 * width); };
  auto spread = sorted.begin();
  for (const Tick& tick : ticks) {
    const auto above =
        std::ranges::lower_bound(ticks, tick.value + width / 2, {}, &Tick::value);
    const auto below =
        std::ranges::upper_bound(ticks, tick.value - width / 2, {}, &Tick::value);
    const double up = above == ticks.end() ? width / 2 : reach(above->value - tick.value);
    const double down =
        below == ticks.begin() ? width / 2 : reach(tick.value - (below - 1)->value);
    for (std::size_t i = 0; i < tick.count; ++i) {
      const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(tick.count);
      *spread++ = tick.value - down + part * (up + down);
    }
  }
  std::ranges::sort(sorted);
}

/// How bimodal values are: the dip as a multiple of its limit, and at which rank it is.
struct Bimodality {
  double excess;
  std::size_t cut;
};

/// Of all values, of their lowest quarter or of their highest, whichever is the most bimodal. A small
/// mode far from a large one makes no deep dip in the whole, but a deep one in its quarter; and a
/// quarter of unimodal values is unimodal.
Bimodality bimodality(std::span<const double> sorted) {
  const auto of_part = [&](std::size_t first, std::size_t count) {
    const Dip found = dip(sorted.subspan(first, count));
    return Bimodality{found.value / dip_limit(count), first + found.cut};
  };
  const std::size_t n = sorted.size(), quarter = n / 4;
  return std::max({of_part(0, n), of_part(0, quarter), of_part(n - quarter, quarter)},
                  [](const Bimodality& a, const Bimodality& b) { return a.excess < b.excess; });
}

using Parts = std::vector<std::span<const double>>;  // neighbours, ascending

/// Appends the parts into which the values must be cut until each is unimodal.
void cut(std::span<const double> sorted, Parts& parts) {
  const Bimodality found = bimodality(sorted);
  if (found.excess <= 1) {
    parts.push_back(sorted);
    return;
  }
  cut(sorted.first(found.cut), parts);
  cut(sorted.subspan(found.cut), parts);
}

/// Unites neighbours, the least bimodal first, for as long as two are unimodal together or one is
/// smaller than `fewest`.
void unite(Parts& parts, double fewest) {
  const auto united = [](std::span<const double> left, std::span<const double> right) {
    return std::span(left.data(), left.size() + right.size());
  };
  while (parts.size() > 1) {
    double least = std::numeric_limits<double>::infinity();
    auto best = parts.end();
    for (auto left = parts.begin(), right = left + 1; right != parts.end(); ++left, ++right) {
      const double bimodal = bimodality(united(*left, *right)).excess;
      const bool too_small = static_cast<double>(std::min(left->size(), right->size())) < fewest;
      if ((bimodal <= 1 || too_small) && bimodal < least) {
        least = bimodal;
        best = left;
      }
    }
    if (best == parts.end()) return;
    *best = united(*best, *(best + 1));
    parts.erase(best + 1);
  }
}

}  // namespace

std::optional<int> modes(std::span<const double> in_order) {
  if (in_order.size() < kFewest) return std::nullopt;
  if (!std::ranges::all_of(in_order, [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  std::vector<double> values = thinned(in_order);
  std::ranges::sort(values);
  spread_ties(values);
  Parts parts;
  cut(values, parts);
  unite(parts, kLeastShare * static_cast<double>(values.size()));
  return static_cast<int>(parts.size());
}

}  // namespace launchgap::stats
