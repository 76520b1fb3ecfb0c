// How often the rule of `compare` is wrong, and what it can see, on a machine whose processes vary
// as some that were measured did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/rules/paired.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {

struct ResampledPower {
  double false_alarm_rate = 0;  // share of comparisons of equals that are `slower`
  /// Smallest slowdown, in steps of kDetectableStep, of which kPower are found; absent beyond
  /// kMostDetectable.
  std::optional<double> detectable;
};

inline constexpr double kPower = 0.8;
inline constexpr double kDetectableStep = 0.0025;
inline constexpr double kMostDetectable = 1;

/// `log_medians`: of the processes in the order in which they ran, three at least. A comparison of
/// `pairs` pairs is made of as many differences between neighbours, drawn with replacement, each
/// with a sign of its own: of equals either may be the first. So what makes neighbours alike, a
/// drift for instance, cancels as it does in pairs. 20,000 comparisons for the rate, 4,000 for each
/// slowdown.
ResampledPower resample(std::span<const double> log_medians,
                        const rules::PairedRule& rule,
                        std::size_t pairs,
                        double sign_of_worse,
                        std::uint64_t seed);

/// The same for steadiness: share of comparisons of equals that are `erratic`, of 2,000.
double resample_erratic(std::span<const rules::ProcessSpread> processes,
                        std::size_t pairs,
                        std::uint64_t seed);

/// The exact 95 % interval of a probability, of which `successes` of `trials` were seen (Clopper
/// and Pearson, Biometrika 26 (1934) 404). [0, 1] for no trials.
stats::Interval binomial_interval(std::size_t successes, std::size_t trials);

}  // namespace launchgap::regression
