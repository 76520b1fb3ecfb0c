// The rule by which a session is judged against those before it. A session is one night: what its
// processes share (heat, a neighbour, a clock) they share with each other and not with the next, so
// only sessions tell how much sessions vary. docs/definitions.md has its rates, and what it is
// blind to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/core/metric.h"
#include "harness/core/verdict.h"
#include "harness/rules/spread.h"

namespace launchgap::rules {

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
  // As it was judged then; see NightJudgement.
  int hit = 0;
  SpreadHits spread_hits = {};
  std::int64_t level_since_s = 0;
  std::optional<double> anchor = {};
  bool confirmed = false;  // as slower: it is no longer compared with
};

inline constexpr std::size_t kFewestNights = 20, kMostNights = 60;
inline constexpr double kNightDistance = 3;  // robust standard deviations
inline constexpr double kNightLeastChange = 0.03;
/// Slower is what hits in three sessions in a row, or in four of six.
inline constexpr int kNightsInARow = 3;
inline constexpr std::size_t kNightsLookedAt = 6;
inline constexpr int kHitsOfThose = 4;
/// A level begins anew with ten sessions of which nine are faster.
inline constexpr std::size_t kNightsOfLevel = 10;
inline constexpr int kFasterOfThose = 9;
/// Creep: the median of seven sessions, and the last of them, lie 5 % beyond the anchor.
inline constexpr std::size_t kNightsOfCreep = 7;
inline constexpr double kLeastCreep = 0.05;
inline constexpr std::int64_t kNightApartS = std::int64_t{6} * 3600;

/// Compared with sessions; `baseline_p99` is the median of their p99.
struct NightJudgement : Judgement {
  double low = 0, high = 0;  // between which a value is no hit; with a baseline only
  int hit = 0;               // 1: beyond the limits and slower, -1: and faster
  int hits_in_a_row = 0;     // this one counts
  /// When the first session began that is beyond the limits as this one is, with fewer than three
  /// in a row between them that are not; this one's own time without a hit. Absent for creep, which
  /// has no beginning, and without a baseline.
  std::optional<std::int64_t> since_s;
  std::int64_t level_since_s = 0;  // when the session's level began; 0: with the first one
  std::optional<double> anchor;    // what the level began with, in the metric's unit
  SpreadHits spread_hits = {};
};

/// `earlier`: the metric's valid and comparable sessions before this one, in order of time, the
/// last 60 that are not confirmed and whatever is between them; of more, the rest is ignored.
/// `least_step`, in the metric's unit, is the smallest change that counts beside 3 and 5 %.
///
/// All of it is of logarithms. Compared with are up to 60 sessions that are not confirmed as
/// slower, without a row of hits that goes on. With m their median since the level began, and
/// d 1.4826 times the median absolute distance from a line through them (Theil's incomplete method,
/// so that drift is not taken for scatter), z = (x - m) / d. A hit is 3 or more, by 3 % or more.
/// Sessions that begin within six hours of another one count with it.
///
/// `suspect` is a hit; `slower` three in a row, or four of six. Where the sessions have two levels
/// (two_levels), a value between them or at them is `unstable`, and a hit lies beyond the worse
/// one. `slower` is creep too: the median of seven sessions, and this one, lie 5 % and 3 d beyond
/// the anchor, which is the median of the level's first 20 sessions, or the worse level where there
/// are two. Ten sessions of which nine are faster are a level of their own, with their median as
/// anchor.
///
/// A figure of the spread hits if it is 3 such deviations and 1.5 times away (p99/p50: 1.25 times;
/// modes: more than in any session before the row of such hits). A CV below 1 %, now and before,
/// does not. Three in a row are `erratic`, or `steadier`.
NightJudgement judge_night(std::span<const Night> earlier,
                           const Night& night,
                           Direction direction,
                           double least_step = 0);

/// Puts into a session what those after it must know of its judgement.
void remember(const NightJudgement& judgement, Night& night);

// --- Values that change between two levels, as of a machine that is in one of two states ---

/// Two values about which others lie.
struct TwoLevels {
  double lower = 0, upper = 0;
  double deviation = 0;  // about each, of logarithms
};

/// Whether positive values in order of time have two levels between which they change again and
/// again.
///
/// Their logarithms are cut where the squares within both parts are smallest. There are two levels
/// if the parts' means are log(1.03) or more apart, and 2.5 + 72/n times the root mean square of
/// both standard deviations (Ashman's D; Ashman, Bird and Zepf, Astronomical Journal 108 (1994)
/// 2348); if a tenth of the n values, and three, lie on each side of the middle between them; if
/// they pass that middle four times, which a new level and one stray value do not; and if they are
/// explained so at least 1.5 times as well, in squares, as by any two changes in time: one change
/// is a new level, two are a bad week.
///
/// In simulations of 60 sessions that vary by 2 %, independent or autocorrelated, 1 in 100 or fewer
/// have two levels; of those of which 20 % are 6 % slower, more than 90 in 100.
std::optional<TwoLevels> two_levels(std::span<const double> in_order);

}  // namespace launchgap::rules
