// What the replays of recorded steps say to somebody who wants them faster.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/replayed_steps.h"

namespace launchgap {

/// Of each pattern on each device, by its plain runs: what binds it, whether graphs are faster, and
/// how far its replay agrees with the recording.
std::vector<Finding> pattern_findings(const SessionData& session,
                                      const std::vector<PatternRow>& rows);

}  // namespace launchgap
