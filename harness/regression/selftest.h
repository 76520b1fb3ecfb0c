// `selftest`: how much processes vary on this machine, how often `compare` is wrong with that, and
// which slowdown it finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/regression/compare.h"
#include "harness/regression/history.h"

namespace launchgap::regression {

inline constexpr double kPower = 0.8;
inline constexpr double kDetectableStep = 0.0025;
inline constexpr double kMostDetectable = 1;

/// How often the rule of `compare` is wrong, and what it can see, on a machine whose processes vary
/// as some that were measured did. `log_medians`: of the processes in the order in which they ran,
/// three at least. A comparison of `pairs` pairs is made of as many differences between neighbours,
/// drawn with replacement, each with a sign of its own: of equals either may be the first. So what
/// makes neighbours alike, a drift for instance, cancels as it does in pairs. 20,000 comparisons
/// for the rate, 4,000 for each slowdown. `detectable` is in steps of kDetectableStep, and absent
/// beyond kMostDetectable.
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

// --- What the nights of a history say of the rule that judges them ---

/// A metric of a history, and how often the rule of nights is wrong about it.
struct NightRate {
  Rate rate;
  std::string device_name;
  std::size_t nights = 0;
};

struct NightRates {
  std::vector<NightRate> rates;
  std::map<std::string, std::size_t> without;  // how many metrics have none, by the reason
};

/// Of every metric with enough valid nights of the fingerprint that it had last; see
/// resample_nights(). Takes some 0.1 s each. Throws Stopped once a signal was noted.
NightRates rates_of_nights(const History& history);

/// What `selftest` found by resampling processes, to be kept in a history.
std::vector<Rate> rates_of_pairs(const Selftest& selftest);

/// What `selftest` found, as JSON:
/// {"schema": "launchgap-selftest/1", "launchgap", "rows": [...], "notes": [...]}. Rates, noise and
/// changes are shares: 0.05 is 5 %. What is not known is left out.
Json to_json(const Selftest& selftest, const NightRates* nights);

}  // namespace launchgap::regression
