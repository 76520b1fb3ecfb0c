// A worker's main task: measures the cases of one run on its device, and records them.
#pragma once

#include "harness/run/job.h"

namespace launchgap {

/// Measures and tells the parent of each step. Throws what keeps it from beginning, and WriteError
/// where nothing can be recorded; what goes wrong with a case is the case's. Does not return where
/// tearing down could crash or hang: after a sticky error, and where the process is traced.
void measure(const job::Run& job);

}  // namespace launchgap
