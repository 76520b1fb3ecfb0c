// The rule by which a session is judged against those before it. A session is one night: what its
// processes share (heat, a neighbour, a clock) they share with each other and not with the next, so
// only sessions tell how much sessions vary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/metric.h"
#include "harness/core/verdict.h"
#include "harness/regression/spread_limits.h"

namespace launchgap::regression {

/// What tells how much a metric varies within a session.
enum class SpreadFigure { within_run_cv, between_run_cv, tail, modes };
inline constexpr std::size_t kSpreadFigures = 4;
std::string_view name_of(SpreadFigure figure);

/// Of each figure; absent where it is not known.
using Spread = std::array<std::optional<double>, kSpreadFigures>;
/// Of each figure: 1 beyond what earlier sessions have, -1 below, 0 neither.
using SpreadHits = std::array<int, kSpreadFigures>;

/// A metric in one session that is valid.
struct Night {
  std::int64_t begin_s = 0;  // Unix time at which the session began
  double value = 0;          // median of its processes' medians, in the metric's unit
  Spread spread = {};
  std::optional<double> p99 = {};  // of all samples; reported, never judged
  int hit = 0;  // 1: beyond the limits and slower, -1: and faster, as judged then
  SpreadHits spread_hits = {};
  bool confirmed = false;  // as slower: it is no longer compared with
};

inline constexpr std::size_t kFewestNights = 20, kMostNights = 60;
inline constexpr double kNightDistance = 3;  // robust standard deviations
inline constexpr double kNightLeastChange = 0.03;
inline constexpr int kNightsInARow = 3;
inline constexpr std::int64_t kNightApartS = std::int64_t{6} * 3600;

struct NightJudgement {
  Verdict verdict = Verdict::same;
  std::string reason;
  std::size_t compared_with = 0;       // sessions
  std::optional<double> baseline;      // their median
  std::optional<double> baseline_p99;  // and of their p99
  std::optional<double> change;        // value / baseline - 1
  std::optional<double> z;             // positive: slower
  double low = 0, high = 0;            // between which a value is no hit; with a baseline only
  int hit = 0;
  int hits_in_a_row = 0;  // this one counts
  Steadiness steadiness = Steadiness::same;
  std::string steadiness_reason;
  SpreadHits spread_hits = {};
};

/// `earlier`: the metric's valid and comparable sessions before this one, in order of time, the
/// last 60 that are not confirmed and whatever is between them; of more, the rest is ignored.
/// `least_step`, in the metric's unit, is the smallest change that counts beside 3 %.
///
/// With m and d the median and 1.4826 times the median absolute deviation of the logarithms of up
/// to 60 sessions that are not confirmed as slower, and x that of this one, z = (x - m) / d. A hit
/// is 3 or more, by `least_change` or more. One hit is `suspect`; three sessions in a row, each six
/// hours or more after the one before, are `slower`. Faster likewise, and not said before the
/// third. Below 20 sessions there is no baseline. What has two levels (two_levels) is `unstable`.
///
/// A figure of the spread hits if it is 3 such deviations and 1.5 times away (p99/p50: 1.25 times;
/// modes: more than in any session). A CV below 1 %, now and before, does not. Three in a row are
/// `erratic`, or `steadier`.
NightJudgement judge_night(std::span<const Night> earlier,
                           const Night& night,
                           Direction direction,
                           double least_step = 0);

/// Whether values in order of time have two levels between which they change again and again.
///
/// Their logarithms are cut where the squares within both parts are smallest; each part has a tenth
/// of the n values, and three. There are two levels if the means are log(1.03) or more apart, and
/// 2.5 + 72/n times the root mean square of both parts' standard deviations (Ashman's D; Ashman,
/// Bird and Zepf, Astronomical Journal 108 (1994) 2348), and three or more steps lead from one to
/// the other: one step is a new level, two are a bad week.
///
/// In simulations of 60 sessions that vary by 2 %, independent or autocorrelated, 1 in 100 or fewer
/// have two levels; of those of which 20 % are 6 % slower, more than 90 in 100.
bool two_levels(std::span<const double> in_order);

}  // namespace launchgap::regression
