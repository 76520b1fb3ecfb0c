// What the medians of some runs are as a ratio to those of others. Whoever asks whether two groups
// of runs differ asks here; how sure and by how much one must be depends on what is concluded.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "harness/core/verdict.h"
#include "harness/stats/stats.h"

namespace launchgap::rules {

/// a / b by their geometric means, with Welch's interval (stats/stats.h) of the difference of the
/// logarithms, 95 % unless another `tail` is left out on either side. Absent below two values in
/// either, and where one is not positive and finite.
std::optional<stats::Estimate> ratio(std::span<const double> a,
                                     std::span<const double> b,
                                     double tail = 0.025);

/// Welch's interval of a / b, widened to `shown` where that lies outside: medians over all samples,
/// or of runs, and means of logarithms are not quite the same. Absent as ratio() is.
std::optional<stats::Interval> interval_around(double shown,
                                               std::span<const double> a,
                                               std::span<const double> b,
                                               double tail);

/// What a ratio is once its ends and its value are known.
struct PooledRatio {
  double value;
  std::optional<stats::Interval> interval;  // from four values on
};

/// The same where one group may be a single value: Student's interval, the scatter of both groups
/// pooled. Absent for an empty group, and where a value is not positive and finite.
std::optional<PooledRatio> pooled_ratio(std::span<const double> a,
                                        std::span<const double> b,
                                        double tail = 0.025);

// Advice: a program is changed for it.

enum class RatioVerdict {
  few_runs,  // of one side or both
  no_ratio,  // a median is zero
  unclear,   // the interval is too wide to say anything
  same,      // less than kLeastDifference, or not told from noise
  more,
  less,
};

/// Of times, the first of which is judged.
Verdict time_verdict(RatioVerdict verdict);

inline constexpr std::size_t kRunsForAClaim = 3;

/// Two levels, by their run medians. `more` and `less` are claimed if both sides have
/// kRunsForAClaim runs, the 95 % interval excludes 1, and the ratio is beyond kLeastDifference.
struct Ratio {
  RatioVerdict verdict = RatioVerdict::few_runs;
  std::optional<double> value;
  std::optional<stats::Interval> interval;
  std::size_t runs = 0, reference_runs = 0;

  bool claims() const { return verdict == RatioVerdict::more || verdict == RatioVerdict::less; }
};
Ratio ratio_of(std::span<const double> medians, std::span<const double> reference);

/// The same where the i-th values of both are of one process, whose own speed cancels: Student's
/// interval of the mean of log(value/reference). `few_runs` where there are not as many of both.
Ratio paired_ratio_of(std::span<const double> values, std::span<const double> reference);

// Devices beside each other: many cases at once, of which one is far off by chance.

/// A difference below this, either way, is none.
inline constexpr double kSame = 1.02;

enum class SpeedVerdict { faster, slower, same, within_noise };
/// "faster", "slower", "same", "within the noise".
std::string_view name_of(SpeedVerdict verdict);

/// How many times as fast one device is as another in one of `comparisons` cases.
struct Speedup {
  double times = 1;
  /// Of `times`, 95 %; absent where one has a single run, or the noise is unknown.
  std::optional<stats::Interval> interval = {};
  /// The same for all comparisons at once (Bonferroni).
  std::optional<stats::Interval> certain = {};
  /// A run's median is not above 0, so that nothing says how much `times` varies by chance.
  bool unknown_noise = false;

  /// Its ends; `times` itself where there is none.
  double at_least() const { return certain ? certain->low : times; }
  double at_most() const { return certain ? certain->high : times; }
  /// `faster`, `slower`: `certain` lies beyond kSame; of single runs `times` does. `within_noise`:
  /// `times` lies beyond it, and that is not certain; always where the noise is unknown.
  SpeedVerdict verdict() const;
};

/// `times` is by the medians over all samples; the intervals are of the runs' medians and contain
/// it. `fast` and `slow` are the runs' medians, in the order in which a larger first one is faster.
Speedup speedup(double times,
                std::span<const double> fast,
                std::span<const double> slow,
                std::size_t comparisons);

}  // namespace launchgap::rules
