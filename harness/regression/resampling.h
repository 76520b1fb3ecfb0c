// How often the rule of `compare` is wrong, and what it can see, on a machine whose processes vary
// as some that were measured did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/regression/report.h"
#include "harness/rules/nights.h"
#include "harness/rules/paired.h"

namespace launchgap::regression {

inline constexpr double kPower = 0.8;
inline constexpr double kDetectableStep = 0.0025;
inline constexpr double kMostDetectable = 1;

/// `log_medians`: of the processes in the order in which they ran, three at least. A comparison of
/// `pairs` pairs is made of as many differences between neighbours, drawn with replacement, each
/// with a sign of its own: of equals either may be the first. So what makes neighbours alike, a
/// drift for instance, cancels as it does in pairs. 20,000 comparisons for the rate, 4,000 for each
/// slowdown. `detectable` is in steps of kDetectableStep, and absent beyond kMostDetectable.
MeasuredPower resample(std::span<const double> log_medians,
                       const rules::PairedRule& rule,
                       std::size_t pairs,
                       double sign_of_worse,
                       std::uint64_t seed);

/// The same for steadiness: share of comparisons of equals that are `erratic`, of 2,000.
double resample_erratic(std::span<const rules::ProcessSpread> processes,
                        std::size_t pairs,
                        std::uint64_t seed);

// --- The same of the rule of nights, with sessions that vary as those of a history did ---

/// Fewer sessions say too little of how sessions vary.
inline constexpr std::size_t kFewestToResample = 40;

struct NightPower {
  double noise = 0;  // standard deviation of the values' logarithms
  /// Alarms that begin, and `erratic` ones, per session; and the smallest lasting slowdown, in
  /// steps of 0.5 % up to 100 %, of which 80 % are `slower` within five sessions.
  MeasuredPower power;
};

/// Alarms in order of time, where those of one bad time count once: between two that count lie six
/// sessions without one.
int alarms_that_begin(const std::vector<bool>& alarms);

/// `nights`: a metric's valid and comparable sessions in order of time, those that were slower too.
/// The rate of false alarms is the mean of two: of the alarms that the rule raises on these nights
/// as they were, and on nights drawn from them. The former knows how long bad times last and what
/// wanders, and has few nights; the latter has many, and no time longer than a stretch.
///
/// Series of 120 are made of stretches of 15 that follow one another, drawn with replacement (the
/// moving-block bootstrap: Kunsch, Annals of Statistics 17 (1989) 1217); the last 60 are judged, of
/// 100 series: 6,000 sessions. A slowdown begins in the 61st.
///
/// Absent below kFewestToResample, and where a value is not positive.
std::optional<NightPower> resample_nights(std::span<const rules::Night> nights,
                                          Direction direction,
                                          double least_step,
                                          std::uint64_t seed);

}  // namespace launchgap::regression
