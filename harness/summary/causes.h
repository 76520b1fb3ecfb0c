// What makes a recorded job's launches slow or uneven, as far as its recording tells. The figures
// are those that harness/recording kept with the events at hand; what they mean is decided here.
// docs/recordings.md says what each is, docs/definitions.md by what rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// Process by process, what costs most first; then what ranks show together.
std::vector<Finding> causes(const SessionData& session);

}  // namespace launchgap
