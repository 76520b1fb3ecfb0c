// The CUDA runtime's ways to launch, through the plugin of runtime_plugin.h.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace launchgap::cuda {

/// Loads the plugin once per process. Throws Unsupported if there is none or it cannot be used
/// here, with what to do about it.
std::unique_ptr<NullLauncher> runtime_launcher(RuntimeApi api);

}  // namespace launchgap::cuda
