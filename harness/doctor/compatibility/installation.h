// The machine as the rules for frameworks want it.
#pragma once

#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/python_packages.h"
#include "harness/doctor/machine/machine_facts.h"

namespace launchgap::doctor {

/// A GPU's name and compute capability, or those that its PCI id stands for.
std::string name_of_gpu(const JoinedGpu& gpu);
std::optional<Capability> capability_of(const JoinedGpu& gpu);

/// What this machine has. Libraries are those that the loader would find by its cache and by
/// LD_LIBRARY_PATH; pip's wheels are left to the frameworks that come with them.
Installation installation_of(const MachineFacts& facts,
                             const ActivePython& python,
                             const SystemFiles& files);

}  // namespace launchgap::doctor
