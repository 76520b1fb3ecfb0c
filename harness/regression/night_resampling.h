// How often the rule of nights is wrong, and what it can see, with sessions that vary as those of a
// history did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/regression/nights.h"
#include "harness/regression/report.h"

namespace launchgap::regression {

/// Fewer sessions say too little of how sessions vary.
inline constexpr std::size_t kFewestToResample = 40;

struct NightPower {
  double noise = 0;  // standard deviation of the values' logarithms
  /// Of `slower` and of `erratic`, per session; and the smallest lasting slowdown, in steps of
  /// 0.5 % up to 100 %, of which 80 % are `slower` within five sessions.
  MeasuredPower power;
};

/// `nights`: a metric's valid and comparable sessions in order of time. Series of 120 are made of
/// stretches of five that follow one another, drawn with replacement, so that bad nights keep their
/// neighbours and what drifts keeps drifting (the moving-block bootstrap: Kunsch, Annals of
/// Statistics 17 (1989) 1217); the last 60 are judged, of 200 series: 12,000 sessions. A slowdown
/// begins in the 61st.
///
/// Absent below kFewestToResample, where a value is not positive, and where the sessions have two
/// levels, which are not gated.
std::optional<NightPower> resample_nights(std::span<const Night> nights,
                                          Direction direction,
                                          double least_step,
                                          std::uint64_t seed);

}  // namespace launchgap::regression
