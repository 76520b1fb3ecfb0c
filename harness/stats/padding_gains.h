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
  std::size_t size = 0;    // which of the series
  std::size_t pad_to = 0;  // which is the fastest up to kMostPadding; itself where none is faster
  double gain = 1;         // time at the size / time at `pad_to`
  std::optional<Interval> interval;  // of the gain; absent where there can be no verdict
  bool cliff = false;                // it is above kLeastGain, and not by chance
};

inline constexpr double kMostPadding = 1.25;
inline constexpr double kLeastGain = 1.05;
inline constexpr std::size_t kProcessesForACliff = 10;

/// g(s) = time at s / least time at s', s <= s' <= 1.25 s: no model of how the time should grow,
/// and nothing to tune. One row for each size that has a time, ascending.
///
/// The least of many noisy values looks too good. So s' is chosen on half of the processes and the
/// gain is taken from the other half, and the other way round; a process's own speed cancels, since
/// both times are of one process. What is chosen is the least median plus two standard errors, so
/// that a noisy size is no goal. Over the differences of logarithms of all processes:
///   gain = exp(10 % trimmed mean), standard error by Yuen (Biometrika 61 (1974) 165);
///   interval = +- the larger of Student's t (99 %) times its own standard error, and t at 1 -
///   1e-4, for all sizes at once (Bonferroni), times the root mean square over the sizes.
/// A cliff has a gain above 1.05, an interval above 1, and in either half a median gain above 1.03.
/// How often this errs: tests/stats/padding_gains_test.cpp.
///
/// With fewer than kProcessesForACliff processes, or where a size lacks a process, its gain is that
/// of the medians, and no cliff. It is blind to a cliff of which no better size was measured within
/// 1.25, and to one below 1.05.
std::vector<PaddingGain> padding_gains(std::span<const SizeTimes> series);

}  // namespace launchgap::stats
