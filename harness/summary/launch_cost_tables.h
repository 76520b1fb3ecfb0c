// The tables of what makes a launch cost.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/summary/summary.h"

namespace launchgap {

/// Writes advice.csv, published.csv and fit.csv.
void write_launch_cost_tables(const SessionData& session,
                              const std::vector<SummaryRow>& rows,
                              const std::filesystem::path& folder);

}  // namespace launchgap
