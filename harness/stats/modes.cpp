#include "harness/stats/modes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

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

using Corners = std::vector<std::size_t>;  // ranks, ascending

/// Greatest convex functions below an empirical distribution and least concave ones above it. In
/// units of its steps: at the value of rank i it rises from i to i + 1.
class Envelopes {
 public:
  explicit Envelopes(std::span<const double> sorted)
      : x_(sorted),
        convex_before_(sorted.size(), 0),
        concave_after_(sorted.size(), sorted.size() - 1) {
    const std::size_t last = x_.size() - 1;
    for (std::size_t i = 1; i <= last; ++i) {
      std::size_t corner = i - 1;
      while (corner != 0 && bend(convex_before_[corner], corner, i) <= 0)
        corner = convex_before_[corner];
      convex_before_[i] = corner;
    }
    for (std::size_t i = last; i-- > 0;) {
      std::size_t corner = i + 1;
      while (corner != last && bend(i, corner, concave_after_[corner]) >= 0)
        corner = concave_after_[corner];
      concave_after_[i] = corner;
    }
  }

  Corners convex(std::size_t low, std::size_t high) const {
    Corners corners{high};
    while (corners.back() > low) corners.push_back(convex_before_[corners.back()]);
    std::ranges::reverse(corners);
    return corners;
  }

  Corners concave(std::size_t low, std::size_t high) const {
    Corners corners{low};
    while (corners.back() < high) corners.push_back(concave_after_[corners.back()]);
    return corners;
  }

  /// How far, at rank i, the top of the distribution's step is above the convex side from a to b.
  /// NaN, which is not larger than anything, where the side is vertical.
  double above_convex(std::size_t a, std::size_t b, std::size_t i) const {
    return static_cast<double>(i - a + 1) - rise(a, b, i);
  }

  /// How far, at rank i, the foot of the distribution's step is below the concave side from a to b.
  double below_concave(std::size_t a, std::size_t b, std::size_t i) const {
    return rise(a, b, i) - static_cast<double>(i - a) + 1;
  }

 private:
  double rise(std::size_t a, std::size_t b, std::size_t i) const {
    return (x_[i] - x_[a]) * (static_cast<double>(b - a) / (x_[b] - x_[a]));
  }

  /// Positive where the line through the ranks a, b, c bends upward.
  double bend(std::size_t a, std::size_t b, std::size_t c) const {
    return (x_[b] - x_[a]) * static_cast<double>(c - b) -
           (x_[c] - x_[b]) * static_cast<double>(b - a);
  }

  std::span<const double> x_;
  Corners convex_before_, concave_after_;  // the neighbouring corner where each rank is one
};

/// The sides between whose ends the envelopes are furthest apart.
struct Gap {
  std::size_t low, high;
  double width = 0;
};

Gap widest_gap(const Envelopes& envelopes, const Corners& convex, const Corners& concave) {
  Gap widest{convex.front(), convex.back()};
  const auto compare = [&](const Gap& gap) {
    if (gap.width >= widest.width) widest = gap;
  };
  for (std::size_t i = 1, j = 1; convex[i] != concave[j];) {
    if (concave[j] < convex[i]) {
      compare({convex[i - 1],
               concave[j],
               envelopes.above_convex(convex[i - 1], convex[i], concave[j])});
      ++j;
    } else {
      compare(
          {convex[i], concave[j], envelopes.below_concave(concave[j - 1], concave[j], convex[i])});
      ++i;
    }
  }
  return widest;
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

Dip dip(std::span<const double> sorted) {
  if (sorted.empty() || sorted.front() == sorted.back()) return {};
  const Envelopes envelopes(sorted);
  Dip deepest;  // in steps of the distribution, until the end
  const auto compare = [&](double steps, std::size_t cut) {
    if (steps > deepest.value) deepest = {steps, cut};
  };
  // A unimodal distribution function is convex, then concave. Where it changes is narrowed down for
  // as long as the envelopes there are further apart than the distribution is from them outside.
  std::size_t low = 0, high = sorted.size() - 1;
  while (true) {
    const Corners convex = envelopes.convex(low, high), concave = envelopes.concave(low, high);
    const Gap gap = widest_gap(envelopes, convex, concave);
    if (gap.width < deepest.value) break;
    for (std::size_t side = 0; convex[side] < gap.low; ++side) {
      const std::size_t a = convex[side], b = convex[side + 1];
      compare(1, b);
      for (std::size_t i = a + 1; i < b; ++i) compare(envelopes.above_convex(a, b, i), i + 1);
    }
    for (std::size_t side = concave.size() - 1; concave[side] > gap.high; --side) {
      const std::size_t a = concave[side - 1], b = concave[side];
      compare(1, b);
      for (std::size_t i = a + 1; i < b; ++i) compare(envelopes.below_concave(a, b, i), i);
    }
    if (gap.low == low && gap.high == high) break;
    low = gap.low;
    high = gap.high;
  }
  deepest.value /= 2 * static_cast<double>(sorted.size());
  return deepest;
}

double dip_limit(std::size_t n) {
  struct Row {
    double n;
    double scaled;  // sqrt(n) times the dip
  };
  static constexpr std::array<Row, 8> kTable = {{
      {10, 0.5277},
      {20, 0.5661},
      {50, 0.6024},
      {100, 0.6217},
      {200, 0.6349},
      {500, 0.6464},
      {1000, 0.6521},
      {2000, 0.6577},
  }};
  const auto count = static_cast<double>(n);
  const double root = std::sqrt(count);
  if (count < kTable.front().n) return 0.25;
  if (count >= kTable.back().n) return kTable.back().scaled / root;
  const auto above = std::ranges::upper_bound(kTable, count, {}, &Row::n), below = above - 1;
  const double part = (root - std::sqrt(below->n)) / (std::sqrt(above->n) - std::sqrt(below->n));
  return std::lerp(below->scaled, above->scaled, part) / root;
}

}  // namespace launchgap::stats
