// The rules in their layers, each on the one before; diagnose() puts them together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/machine/machine_facts.h"

namespace launchgap::doctor {

/// Whether there is any sign of an NVIDIA GPU: on the PCI bus, in NVML, or in the driver's list.
bool has_gpu(const MachineFacts& facts);

/// What is wrong with single GPUs while others, or the driver, work.
std::vector<Finding> diagnose_gpus(const MachineFacts& facts);
/// What is wrong with the libraries that programs would load.
std::vector<Finding> diagnose_libraries(const MachineFacts& facts, bool driver_works);
/// What lets GPUs that work be slow, uneven or full.
std::vector<Finding> diagnose_state(const MachineFacts& facts);

/// What a code of the CUDA driver or runtime means here. `gpu` is null where it concerns none.
Finding finding_of_code(const MachineFacts& facts,
                        const JoinedGpu* gpu,
                        const std::string& call,
                        int code,
                        const std::string& text);

/// Whether a GPU has fallen off the bus, by NVML or by the kernel's Xid 79.
std::optional<Finding> why_lost(const MachineFacts& facts, const JoinedGpu& gpu);

/// Whether the driver that is installed has dropped, or does not know, a GPU on the bus.
std::optional<Finding> why_dropped(const MachineFacts& facts, const JoinedGpu& gpu);

/// Why a GPU is not among those that the driver lists, while it lists others or none.
Finding why_not_listed(const MachineFacts& facts, const JoinedGpu& gpu);

}  // namespace launchgap::doctor
