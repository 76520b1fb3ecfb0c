// Whether a series rises, and how fast, or is another later on, without asking how its values are
// distributed.
#pragma once

#include <span>

namespace launchgap {

/// The median of the slopes between all pairs of values (Theil 1950, Sen 1968), per step of the
/// series. 0 of fewer than two.
double theil_sen_slope(std::span<const double> values);

/// How probable as many rises, or more, would be in a series without trend: one-sided, by the test
/// of Mann (1945) and Kendall with its correction for ties, in the normal approximation. 1 of fewer
/// than four values.
double mann_kendall_rise_p(std::span<const double> values);

/// How probable it is that as many values of one are larger than of the other, or more: two-sided,
/// Mann and Whitney (Annals of Mathematical Statistics 18 (1947) 50), by all ways to choose the
/// ranks. Exact without ties; with them it is at least the true chance. Both have as many values.
double rank_sum_p(std::span<const double> early, std::span<const double> late);

}  // namespace launchgap
