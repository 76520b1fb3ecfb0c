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

/// A value and how many values are it, or are rounded to it.
struct Tick {
  double value;
  double count;
};

/// Values that follow each other within `distance` count as one tick, at their mean.
std::vector<Tick> ticks_of(std::span<const Tick> ascending, double distance) {
  std::vector<Tick> ticks;
  double last = 0;
  for (const auto& [value, count] : ascending) {
    if (ticks.empty() || value - last > distance) {
      ticks.push_back({value, count});
    } else {
      Tick& tick = ticks.back();
      tick.count += count;
      tick.value += (value - tick.value) * count / tick.count;
    }
    last = value;
  }
  return ticks;
}

/// The distance between the ticks of the clock that the values were read from: the gap that 5 % of
/// the values have beside them, or a smaller one, so that a few values between ticks cannot hide
/// it. The widest gap among the two on either side, since a whole number of ticks need not be one
/// of nanoseconds: a clock of 24 MHz gives 41 and 42, 83 and 84, and, while its rate is adjusted,
/// 124 to 126.
double resolution(std::span<const Tick> values) {
  std::vector<Tick> gaps;
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double widest = 0;
    for (std::size_t j = i - std::min<std::size_t>(i, 2); j < i + 2 && j + 1 < values.size(); ++j)
      widest = std::max(widest, values[j + 1].value - values[j].value);
    gaps.push_back({widest, values[i].count});
    total += values[i].count;
  }
  std::ranges::sort(gaps, {}, &Tick::value);
  double seen = 0;
  for (const Tick& gap : gaps) {
    seen += gap.count;
    if (seen >= 0.05 * total) return gap.value;
  }
  return 0;
}

/// Spreads the values of each tick evenly over what was rounded to it: half way to the next ticks,
/// which need not be the same on both sides (a rate is the inverse of a time). Otherwise each tick
/// would be a mode.
std::vector<double> without_ties(std::span<const double> sorted) {
  std::vector<Tick> values;
  for (const double value : sorted) values.push_back({value, 1});
  values = ticks_of(values, 0);
  const double width = resolution(values);
  const std::vector<Tick> ticks = ticks_of(values, width / 4);
  const double near = 0.75 * width;  // what is nearer is not the next tick, only off this one
  const auto half_way = [near](double distance) { return std::min(distance / 2, near); };
  std::vector<double> spread;
  for (const auto& [value, count] : ticks) {
    const auto above = std::ranges::lower_bound(ticks, value + near, {}, &Tick::value);
    const auto below = std::ranges::upper_bound(ticks, value - near, {}, &Tick::value);
    const double up = above == ticks.end() ? width / 2 : half_way(above->value - value);
    const double down = below == ticks.begin() ? width / 2 : half_way(value - (below - 1)->value);
    for (double i = 0; i < count; ++i)
      spread.push_back(value - down + (up + down) * (i + 0.5) / count);
  }
  std::ranges::sort(spread);
  return spread;
}

/// How bimodal values are: the dip as a multiple of its limit, and at which rank it is.
struct Bimodality {
  double excess;
  std::size_t cut;
};

/// Of all values, of their lowest quarter or of their highest, whichever is the most bimodal. A
/// small mode far from a large one makes no deep dip in the whole, but a deep one in its quarter;
/// and a quarter of unimodal values is unimodal.
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
  std::vector<double> sorted = thinned(in_order);
  std::ranges::sort(sorted);
  const std::vector<double> values = without_ties(sorted);
  Parts parts;
  cut(values, parts);
  unite(parts, kLeastShare * static_cast<double>(values.size()));
  return static_cast<int>(parts.size());
}

}  // namespace launchgap::stats
