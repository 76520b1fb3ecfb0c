// What differs between the slow and the fast runs of a case: CPU, clock, library, neighbours, and
// how much of the variance between runs that explains.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/rules/factors.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// What one factor says of a case's metric, over all runs of the devices of one name.
struct RunFactor {
  const SummaryRow* row = nullptr;  // of the first of these devices
  std::string_view factor;          // "cpus"
  std::size_t runs = 0;
  rules::Explained found;
  std::string slow, fast;  // values of the slowest and of the fastest run
  std::size_t tried = 0;   // factors that vary between these runs

  rules::FactorVerdict verdict() const { return rules::verdict_of(found, tried); }
};

/// Of metrics of launches and work whose runs differ by 1 % or more (the CV between runs), plain
/// runs alone; those that explain most first.
std::vector<RunFactor> run_factors(const SessionData& session, const std::vector<SummaryRow>& rows);

}  // namespace launchgap
