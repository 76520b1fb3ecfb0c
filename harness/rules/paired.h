// The rule of `compare`: what pairs of processes, one of A and one of B next to each other, say of
// a metric. Nothing here measures; `selftest` resamples the same rule.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/verdict.h"
#include "harness/rules/spread.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {

/// Below this many pairs nothing is judged, and more are looked at whenever there are kLookEvery
/// more of them.
inline constexpr std::size_t kLeastPairs = 8;
inline constexpr std::size_t kLookEvery = 4;
/// How often equals are called slower at most, over all looks. As often they are called faster, and
/// the two-sided interval is 99 %.
inline constexpr double kStatedAlarmRate = 0.005;
inline constexpr double kPairedConfidence = 1 - 2 * kStatedAlarmRate;
/// The smallest change that counts, before what the metric itself asks for
/// (regression/session_figures.h).
inline constexpr double kPairedShare = 0.02;

/// What some pairs say of a metric's level.
struct PairedVerdict {
  Verdict verdict = Verdict::same;  // slower, faster, same, cannot_tell or invalid
  std::string reason;               // of the latter two, without a full stop
  bool decided = false;             // more pairs would change nothing
  std::size_t pairs = 0;            // that were looked at
  double mean = 0;                  // of log(b/a)
  stats::Interval interval{0, 0};   // of this mean; 99 % for all looks at once
};

/// Student's interval of the mean of the pairs' logarithms of b/a: `slower` if it excludes 0 in the
/// worse direction and the mean is beyond the minimum, `faster` likewise; `cannot_tell` if the
/// mean is beyond the minimum all the same, or if it spans more than that in both directions; else
/// `same`.
///
/// Where more than kLeastPairs pairs are planned, it looks at 8 of them, 12, 16 … and all, and
/// stops at the first look that decides: that one of `slower` or `faster` holds, or that the
/// interval lies within the minimum on both sides. With K looks each interval is 1 - 0.01/K, so
/// that all hold together with 99 % (Bonferroni; Jennison and Turnbull, Group Sequential Methods,
/// 2000, section 2.3). It assumes that the pairs' logarithms are independent and normal.
class PairedRule {
 public:
  /// `sign_of_worse`: 1 where larger values are worse, -1 where smaller ones are. `minimum`: the
  /// smallest change that counts, as a share: 0.02. Fewer than kLeastPairs planned count as that.
  PairedRule(std::size_t planned, double sign_of_worse, double minimum);

  /// `log_ratios`: log(b/a) of each pair in order, all finite. `ended`: no more pairs will come,
  /// so what there is makes the last look; and fewer than kLeastPairs are `invalid`.
  PairedVerdict judge(std::span<const double> log_ratios, bool ended) const;

  double minimum() const { return minimum_; }
  std::size_t looks() const { return looks_.size(); }

 private:
  struct Look {
    std::size_t pairs;
    double t;  // Student's quantile
  };
  PairedVerdict look_at(std::span<const double> log_ratios, double t) const;
  double quantile(std::size_t pairs) const;

  double sign_, minimum_;
  std::vector<Look> looks_;
};

/// What is known of how a metric varied in one process.
struct ProcessSpread {
  double median = 0;
  std::optional<double> cv;    // within the process
  std::optional<double> tail;  // p99 / p50
  std::optional<int> modes;
};

/// How steady B is beside A; `a` and `b` have a pair at each place. B is erratic if one of these is
/// larger in B, each at 99 % two-sided and by kLeastSpreadRatio at least; steadier if one is
/// smaller, and none is larger:
/// - the CV within a process, and p99/p50: Student's interval of the mean of the pairs' log ratios;
/// - the CV between processes, of their medians: the F quantile of the ratio of the variances of
///   logarithms;
/// - the number of modes: the sign test over the pairs where it differs.
/// A measure counts only with kLeastPairs pairs that have it, and a CV only if the larger one is
/// kLeastSpreadCv at least.
SpreadVerdict judge_spread(std::span<const ProcessSpread> a, std::span<const ProcessSpread> b);

}  // namespace launchgap::rules
