// All that is found in a session, from every source, in the one order.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/table.h"

namespace launchgap {

/// What the doctor found before, what was not measured, what a comparison with earlier sessions, a
/// recorded job and this machine's own numbers say, and what falling back to the CPU costs.
std::vector<Finding> all_findings(const TableInputs& inputs);

}  // namespace launchgap
