// Sizes that take longer than a slightly larger one, so that padding to that one pays.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/stats/stats.h"

namespace launchgap::stats {

/// One size of a series.
struct SizeTimes {
  double size = 0;  // above 0, and of each series once
  /// By process, in the same order for each size; NaN where a process has none. In any unit, but
  /// one, and above 0: another value counts as none.
  std::vector<double> times;
};

/// What padding a size gains.
struct PaddingGain {
  std::size_t size = 0;              // which of the series
  std::size_t pad_to = 0;            // to which it is best padded; itself where none is faster
  double gain = 1;                   // time at the size / time at `pad_to`
  std::optional<Interval> interval;  // of the gain, which lies in it; absent where there is no
                                     // verdict, and where `pad_to` is the size itself
  bool judged = false;               // there are processes enough for a verdict
  bool cliff = false;                // it is above kLeastGain, and not by chance
};

inline constexpr double kMostPadding = 1.25;
inline constexpr double kLeastGain = 1.05;
inline constexpr std::size_t kProcessesForACliff = 10;
/// What is slower than the fastest size by less than this is as good, if it is nearer.
inline constexpr double kAsGood = 1.01;

/// gain(s) = time at s / time at s', s <= s' <= 1.25 s: no model of how the time should grow, and
/// nothing to tune. One row for each size that has a time, ascending.
///
/// s' is the nearest size that is as good as the fastest one up to 1.25 s: slower by at most
/// kAsGood, or by two standard errors of their difference. Of one value per size it is the fastest
/// itself. The fastest has the least median plus two standard errors, so that a noisy size is no
/// goal.
///
/// The gain is exp(10 % trimmed mean) of the differences of logarithms, each of one process, whose
/// own speed cancels. It is a little too large, since s' was chosen by the same times. So a second
/// gain judges: s' is chosen on half of the processes and the gain taken from the other half, and
/// the other way round. Each of the two has an interval, +- the larger of Student's t (99 %) times
/// its own standard error (Yuen, Biometrika 61 (1974) 165), and t at 1 - 1e-4, for all sizes at
/// once (Bonferroni), times the root mean square of such errors over the sizes. `interval` is that
/// of the gain, with a lower end that is the lower of both. A cliff has a gain above 1.05, an
/// interval above 1, and in either half a median of the second gain above 1.03. How often this
/// errs: tests/stats/padding_gains_test.cpp.
///
/// Processes that lack a size are left out where kProcessesForACliff others have all. Else sizes
/// that a process lacks have no verdict, and with fewer processes no size has: the gain is then
/// that of the medians. It is blind to a cliff of which no better size was measured within 1.25,
/// and to one below 1.05.
std::vector<PaddingGain> padding_gains(std::span<const SizeTimes> series);

}  // namespace launchgap::stats
