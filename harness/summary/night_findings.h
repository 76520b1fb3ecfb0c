// What follows from a comparison with earlier sessions.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/night_rows.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// One for each metric that is slower, and one for all that are suspect, erratic or faster.
std::vector<Finding> night_findings(const SessionData& session,
                                    const std::vector<VerdictRow>& verdicts);

}  // namespace launchgap
