// A report for a person at a terminal.
#pragma once

#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// The sentence that answers, what changed, the worst, what was not judged, and how far to trust
/// it: lines of at most 100 characters, unless a name is longer.
std::string screen_text(const Report& report);

}  // namespace launchgap::regression
