// What a reader of sessions that were put together must know before any number.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// What is missing, as one finding with a line for each; none where nothing is.
std::vector<Finding> merged_findings(const SessionData& session);

}  // namespace launchgap
