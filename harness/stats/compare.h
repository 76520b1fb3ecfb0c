// By how much means differ.
#pragma once

#include <optional>
#include <span>

#include "harness/stats/stats.h"

namespace launchgap::stats {

/// Student's t that is exceeded on either side with probability `tail`.
double student_t(double freedom, double tail);

/// Of values of which no more is known: how many there are, two at least, and their variance.
struct Scatter {
  double n, variance;
};

/// By how much the difference of two means may be off, on either side with probability `tail`:
/// t se, where se² = u + v with u = var(a)/n_a and v = var(b)/n_b, and t is Student's with
/// Satterthwaite's degrees of freedom, se⁴ / (u²/(n_a-1) + v²/(n_b-1)) (Welch, Biometrika 34 (1947)
/// 28). 0 where nothing varies.
double welch_reach(const Scatter& a, const Scatter& b, double tail = 0.025);

/// The same, the scatter of both pooled (Student's), so that one of them may be a single value.
/// Absent below four values in all, and without one in either.
std::optional<double> pooled_reach(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail = 0.025);

/// mean(a) - mean(b) in the unit of the values, +- welch_reach: 95 % unless another `tail` is left
/// out on either side. Absent below two values in either.
std::optional<Estimate> difference(std::span<const double> a,
                                   std::span<const double> b,
                                   double tail = 0.025);

}  // namespace launchgap::stats
