#include "harness/stats/dip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace launchgap::stats {
namespace {

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
