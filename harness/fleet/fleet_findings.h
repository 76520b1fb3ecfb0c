// What a fleet's figures say, in sentences.
#pragma once

#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/fleet_rows.h"

namespace launchgap::fleet {

/// Nodes of which all devices of a kind are worse than those of other nodes: there the host is to
/// be looked at first. Devices that stand out otherwise, the worst ten by name. Where none does:
/// how much that says. Needs everything else of `rows`.
std::vector<Finding> fleet_findings(const FleetRows& rows);

}  // namespace launchgap::fleet
