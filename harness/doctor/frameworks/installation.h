// The machine as the rules for frameworks want it.
#pragma once

#include "harness/doctor/frameworks/frameworks.h"
#include "harness/doctor/machine/facts.h"
#include "harness/doctor/python/packages.h"

namespace launchgap::doctor {

/// What this machine has. Libraries are those that the loader would find by its cache and by
/// LD_LIBRARY_PATH; pip's wheels are left to the frameworks that come with them.
Installation installation_of(const Facts& facts,
                             const ActivePython& python,
                             const SystemFiles& files);

}  // namespace launchgap::doctor
