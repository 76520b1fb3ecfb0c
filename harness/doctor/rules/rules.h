// From facts to findings: for each thing that does not work the one cause, the deepest that the
// facts show, and what else it explains as its symptoms.
#pragma once

#include <optional>
#include <vector>

#include "harness/doctor/finding.h"
#include "harness/doctor/machine/facts.h"

namespace launchgap::doctor {

/// Everything that was found, the most severe first.
std::vector<Finding> diagnose(const Facts& facts);

/// Whether there is any sign of an NVIDIA GPU: on the PCI bus, in NVML, or in the driver's list.
bool has_gpu(const Facts& facts);

// The parts of it, each a layer on the one before.

/// Why the driver gives no GPU to any program; nothing if it gives at least one.
std::optional<Finding> why_no_driver(const Facts& facts);
/// What is wrong with single GPUs while others, or the driver, work.
std::vector<Finding> diagnose_gpus(const Facts& facts);
/// What is wrong with the libraries that programs would load.
std::vector<Finding> diagnose_libraries(const Facts& facts, bool driver_works);
/// What lets GPUs that work be slow, uneven or full.
std::vector<Finding> diagnose_state(const Facts& facts);

/// What a code of the CUDA driver or runtime means here. `gpu` is null where it concerns none.
Finding finding_of_code(const Facts& facts,
                        const Gpu* gpu,
                        const std::string& call,
                        int code,
                        const std::string& text);

/// Whether a GPU has fallen off the bus, by NVML or by the kernel's Xid 79.
std::optional<Finding> why_lost(const Facts& facts, const Gpu& gpu);

/// Whether the driver that is installed has dropped, or does not know, a GPU on the bus.
std::optional<Finding> why_dropped(const Facts& facts, const Gpu& gpu);

/// Why a GPU is not among those that the driver lists, while it lists others or none.
Finding why_not_listed(const Facts& facts, const Gpu& gpu);

}  // namespace launchgap::doctor
