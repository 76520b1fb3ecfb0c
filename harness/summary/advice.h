// What a machine's own numbers say that a program should do, or need not do, about its launches.
#pragma once

#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/core/text.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// Advice for every device, one line at least for every axis that was measured; plain runs, and of
/// traced runs only what it alone can tell. docs/advice.md has the rules. The code is that of the
/// benchmark, "launch-graph"; the share is of the time of what was compared.
/// When a difference is claimed: rules/ratio.h.
std::vector<Finding> advice(const SessionData& session, const std::vector<SummaryRow>& rows);

/// The code of what a benchmark's rule finds: "launch-graph" of "launch/graph".
std::string advice_code(std::string benchmark);

}  // namespace launchgap
