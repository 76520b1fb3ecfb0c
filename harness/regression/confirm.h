// What is suspect, compared with a build that is pinned: side by side, so that it is not the night.
#pragma once

#include "harness/regression/check.h"
#include "harness/regression/compare.h"

namespace launchgap::regression {

/// Compares the cases of suspect results in pairs of `baseline` and `current`, on their devices.
/// What is slower there is `slower`; what is not stays `suspect` and says so, for what changed may
/// lie in both: a driver, the machine. A comparison that fails leaves everything as it is, and a
/// note.
void confirm(Checked& checked, const Side& baseline, const Side& current);

}  // namespace launchgap::regression
