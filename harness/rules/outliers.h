// Which of several devices of one kind differ from the others, and by how much.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/stats/stats.h"

namespace launchgap::rules {

/// A group's level as a ratio to that of the other groups.
struct Deviation {
  std::optional<double> ratio;              // without unit: 1.1 is 10 % above the others
  std::optional<stats::Interval> interval;  // of the ratio, simultaneous for all groups
  bool deviates = false;                    // beyond chance and beyond kLeastDeviation
};

/// Ratios below this, and above its inverse, are not worth a name however certain they are.
inline constexpr double kLeastDeviation = 1.02;

/// From so many groups on it shows how they spread.
inline constexpr std::size_t kGroupsWithSpread = 20;

/// For each group, in their order, how its level compares with that of the others; meant for
/// devices of one kind, where a value is the median of a run.
///
/// With c_i the mean logarithm of group i of k, ratio = exp(c_i - r_i), where r_i is the median of
/// the other groups' c, or of their two middle ones the nearer to c_i. The median, since one slow
/// group among the others must not make the rest look fast; the nearer, so that this holds among
/// three groups too. Of two groups each is compared with the other: the ratios are inverse, and
/// either may be named or both, for nothing tells which of them is at fault.
///
/// interval = exp(c_i - r_i +- t se), at least 95 % for all groups at once, by Bonferroni: t is the
/// 1 - 0.025/k quantile of Student's distribution with N-k degrees of freedom, N values in all;
/// se² = v_i/n_i + f p mean(1/n_j), j the k-1 other groups. p is the variance of the logarithms
/// pooled over all groups; v_i the larger of p and the group's own, since five runs say little of
/// their variance, but an erratic group must not be named for its noise. f = min(1, 2 / (k-1)): a
/// median of normal values has at most pi/2 times the variance of their mean, and the rest is for
/// one among them that is off.
///
/// Where the same groups are compared in several ways (`comparisons` metrics, say), the intervals
/// are simultaneous for all of them too: t is taken at 1 - 0.025/(k comparisons).
///
/// A group deviates if its interval excludes 1 and its ratio is not within 1/kLeastDeviation to
/// kLeastDeviation; of kGroupsWithSpread groups or more, also only if |c_i - r_i| is above t s,
/// where s = 1.4826 median |c - median c| is how the groups spread anyway, and t is the 1 -
/// 0.025/(k comparisons) quantile of Student's distribution with k-1 degrees of freedom. Ten
/// thousand devices that lie normally have one that is far out, which is no defect. And of so many
/// p is at most the median of the groups' variances, each over the median of chi-square / freedom,
/// with half the degrees of freedom: one erratic group must not hide the others.
///
/// Absent: the interval of a group of fewer than three values; everything of a group without
/// values, which does not count, of a single group, and of all groups where a value is not positive
/// and finite.
std::vector<Deviation> deviations(std::span<const std::vector<double>> groups,
                                  std::size_t comparisons = 1);

}  // namespace launchgap::rules
