// The folder `rules` takes the facts of `machine` and what `compatibility` knows of versions, and
// gives findings: for each thing that does not work the one cause, the deepest that the facts show,
// with what else it explains as its symptoms. Other folders include this header alone.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/machine/machine_facts.h"

namespace launchgap::doctor {

/// Everything that was found, the most severe first.
std::vector<Finding> diagnose(const MachineFacts& facts);

/// Why the driver gives no GPU to any program; nothing if it gives at least one.
std::optional<Finding> why_no_driver(const MachineFacts& facts);

/// Whether all that was tried on this GPU went well; without a proof, whether the driver lists it
/// and nothing says that it cannot be used.
bool is_usable(const JoinedGpu& gpu, const std::vector<Finding>& findings);
/// How many GPUs can be used.
std::size_t usable_gpus(const MachineFacts& facts, const std::vector<Finding>& findings);

}  // namespace launchgap::doctor
