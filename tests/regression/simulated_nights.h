// Nights that are made up, and how often the rule of nights is wrong about them: what its tests and
// its table of operating characteristics are made of.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/rules/nights.h"

namespace launchgap::regression {

using Random = std::mt19937_64;

inline constexpr int kSimulatedNights = 150;
inline constexpr std::int64_t kDayS = std::int64_t{24} * 3600;

/// Some nights, from the first to the last, in one of which a series must be called slower.
struct Within {
  std::string name;  // "by the third night"
  int first, last;
  double least = 0;  // share of the series; 0: shown, and nothing is asked of it
};

/// A kind of series.
struct NightKind {
  std::string name;
  /// The logarithm of each night's level; what varies between its processes and within them is
  /// added.
  std::function<std::vector<double>(Random&)> levels;
  double step = 0;  // to which values are rounded, as a share of the level; 0: to none
  double most_false_alarms = -1;   // share of the nights; -1: its slower nights are slower
  std::vector<Within> found = {};  // where something changes
};

/// Without a change, as docs/definitions.md lists them, and with one.
const std::vector<NightKind>& kinds_without_change();
const std::vector<NightKind>& kinds_with_change();

struct Characteristics {
  double slower = 0, suspect = 0, unstable = 0;  // shares of the judged nights
  double ever = 0;                               // share of the series with a slower night
  std::vector<double> found;                     // share of the series, for each of `found`
};

/// The nights of one series, as `check` has them: the median of three processes' medians of 15
/// samples; 0.5 % between the processes, 1 % within. A night a day.
std::vector<rules::Night> simulated_nights(const NightKind& kind, Random& random);

/// Judges each night by those before it.
std::vector<Verdict> verdicts_of(std::vector<rules::Night> nights);

/// Alarms in 100 nights of some metrics, and how many the rates predict that `selftest --history`
/// finds in these nights.
struct Prediction {
  double predicted = 0;
  int counted = 0;
  /// Within Poisson's 99 % of the prediction; or, `within_two`, of a factor of two.
  bool holds(bool within_two) const;
};
Prediction predicted_and_counted(const NightKind& kind, int metrics, std::uint64_t seed);

Characteristics characteristics_of(const NightKind& kind, int series, std::uint64_t seed);

}  // namespace launchgap::regression
