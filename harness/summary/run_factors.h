// What differs between the slow and the fast runs of a case: CPU, clock, library, neighbours, and
// how much of the variance between runs that explains.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// A run's value of something that may explain its speed; text where it is no number.
struct FactorValue {
  std::string text;
  std::optional<double> number = {};
};

/// How far a factor explains what some runs came to.
struct Explained {
  double variance_share = 0;  // of the variance of the logarithms of their medians
  double chance = 1;          // that a factor without effect explains as much
};

/// By groups of equal text: one-way analysis of variance, and the F distribution. By numbers: the
/// squared correlation, and Student's t. Absent below kFewestRuns runs, where all runs have one
/// value or each has another text, and where nothing varies. `logs`: of the runs' medians.
std::optional<Explained> explained(const std::vector<double>& logs,
                                   const std::vector<FactorValue>& values);

inline constexpr std::size_t kFewestRunsForFactors = 6;

/// What one factor says of a case's metric, over all runs of the devices of one name.
struct RunFactor {
  const SummaryRow* row = nullptr;  // of the first of these devices
  std::string_view factor;          // "cpus"
  std::size_t runs = 0;
  Explained found;
  std::string slow, fast;  // values of the slowest and of the fastest run
  std::size_t tried = 0;   // factors that vary between these runs

  /// `explains`: it has half of the variance or more, and chance, times the factors that were
  /// tried, is 1 % at most. `in-part`: the latter alone. `may-be-chance`: neither.
  std::string_view verdict() const;
};

/// Of metrics of launches and work whose runs differ by 1 % or more (the CV between runs), plain
/// runs alone; those that explain most first.
std::vector<RunFactor> run_factors(const SessionData& session, const std::vector<SummaryRow>& rows);

}  // namespace launchgap
