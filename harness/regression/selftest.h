// `selftest`: how much processes vary on this machine, how often `compare` is wrong with that, and
// which slowdown it finds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/regression/compare.h"
#include "harness/regression/resampling.h"

namespace launchgap::regression {

/// Above this noise between processes a machine proves nothing about a metric.
inline constexpr double kMostNoise = 0.03;

/// Real slowdowns, made by a delay within each call.
struct Slowdowns {
  double asked = 0;  // 0.05 is 5 %
  std::size_t tries = 0, found = 0;
  std::optional<double> delay_ns = {};  // that was inserted, by the clock; mean over the processes
  std::optional<double> change = {};    // of the metric, mean over the comparisons
  std::string problem = {};  // why it proves nothing, or less than was asked for; else empty
};

struct SelftestRow {
  SeriesKey key;
  std::string device_name;
  std::string watched;  // why it is not judged, and there is nothing to test; else empty
  std::size_t processes = 0;
  double value = 0;             // median of their medians, in the metric's unit
  std::optional<double> noise;  // standard deviation of the logarithms of their medians
  std::optional<double> lag1;   // autocorrelation of these, in the order in which they ran
  double minimum = 0;           // the smallest change that counts
  double stated_rate = rules::kStatedAlarmRate;
  std::optional<double> false_alarm_rate;  // by resampling
  std::optional<double> erratic_rate;      // the same, of `erratic`
  std::optional<double> detectable;        // by resampling; absent where nothing below 100 % is
  /// Comparisons of this launchgap with itself, how many were `slower`, and the 95 % interval of
  /// the rate that they show.
  std::size_t comparisons = 0, alarms = 0, erratic = 0;
  std::optional<stats::Interval> alarm_interval;
  std::optional<Slowdowns> slowdowns;

  bool too_noisy() const { return noise && *noise > kMostNoise; }
  /// What a page shows beside a verdict; absent where nothing was resampled.
  std::optional<MeasuredPower> power() const;
};

struct SelftestRequest {
  RunOptions run;              // devices, profile, filter, seed and time-out, as of `run`
  std::size_t processes = 40;  // for the noise
  std::size_t pairs = rules::kLeastPairs;  // of each comparison
  std::size_t noop = 0;                    // comparisons of equals
  std::optional<double> slowdown;          // 0.05 is 5 %
  std::size_t tries = 5;                   // with each slowdown
};

struct Selftest {
  std::size_t pairs = rules::kLeastPairs;  // of each comparison, real or resampled
  std::vector<SelftestRow> rows;           // by key
  std::vector<std::string> notes;
};

/// Fills `result` step by step, so that what was found before an error or a signal is there. Throws
/// what plan_pairs() throws; Error if three processes in a row measure nothing; Stopped once a
/// signal was noted, if the caller watches for signals.
void selftest(const SelftestRequest& request, Selftest& result);

}  // namespace launchgap::regression
