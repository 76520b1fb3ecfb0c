// Statistics of samples. Nothing here drops, clips or guesses: what is not defined for the data is
// absent. tests/stats compares every function with numpy and scipy to 1e-9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace launchgap::stats {

/// Quantile of ascending values, linear between order statistics (type 7 of Hyndman and Fan, The
/// American Statistician 50 (1996); numpy's and R's default). `p` in [0, 1]. Absent for no values.
std::optional<double> quantile(std::span<const double> sorted, double p);

/// The same of values in any order, a whole number's too, whose order is lost: a recording may have
/// millions, of which no sorted copy is made. Absent for no values.
std::optional<double> quantile_in_place(std::span<double> values, double p);
std::optional<double> quantile_in_place(std::span<std::int64_t> values, double p);

/// The median of values in any order. Absent for no values.
std::optional<double> median(std::vector<double> values);
/// The median of all but the one at `own`. Absent where there is no other.
std::optional<double> median_of_others(std::vector<double> values, std::size_t own);

/// Compensated sum divided by n. Absent for no values.
std::optional<double> mean(std::span<const double> values);

/// Absent if a value is not positive and finite.
std::optional<std::vector<double>> logarithms(std::span<const double> values);
/// Absent for no values, and likewise.
std::optional<double> geometric_mean(std::span<const double> values);

/// Standard deviation with n - 1 in the denominator, in two passes. Absent below two values.
std::optional<double> standard_deviation(std::span<const double> values);

/// Median of |x - median|, not scaled to the normal distribution. Absent for no values.
std::optional<double> median_absolute_deviation(std::span<const double> sorted);

/// Share of values outside Tukey's fences, q1 - 1.5 IQR and q3 + 1.5 IQR. Absent below four values.
std::optional<double> outlier_share(std::span<const double> sorted);

/// Autocorrelation at lag 1 of values in the order in which they were measured:
/// sum (x[i]-m)(x[i+1]-m) / sum (x[i]-m)^2. Absent below three values, or where all are equal.
std::optional<double> lag1_autocorrelation(std::span<const double> in_order);

struct Interval {
  double low;
  double high;
};

/// What is estimated, and its 95 % interval.
struct Estimate {
  double value;
  Interval interval;

  double low() const { return interval.low; }
  double high() const { return interval.high; }
};

/// Nonparametric interval of the median with at least 95 % coverage: the order statistics that the
/// binomial distribution with p = 1/2 gives (Conover, Practical Nonparametric Statistics,
/// section 3.2). Absent below six values, where no interval reaches 95 %.
std::optional<Interval> median_interval(std::span<const double> sorted);

// --- By how much means differ ---

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

// --- Whether a series rises, and how fast, or is another later on ---

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

}  // namespace launchgap::stats
