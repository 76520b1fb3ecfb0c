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

// --- Which devices of a fleet stand out, the worst first, and by what ---

/// How many times worse than the others of its kind a device is; below 1 it is better.
double times_worse(const FleetOutlierRow& row);

/// Gives those that stand out their place and their evidence: a device on which all failed; one
/// that is worse than its kind in a metric, by the worst of them; one whose score is below 0.75,
/// its relative score only where that is far below most of its kind too. Needs everything else of
/// the devices, and `outliers` with the worst first.
void place_devices(FleetRows& rows);

}  // namespace launchgap::fleet
