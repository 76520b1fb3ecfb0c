// How a process opens its device.
#pragma once

#include <filesystem>

#include "harness/core/process_config.h"
#include "harness/device/backend.h"

namespace launchgap {

/// By its configuration. `jit_cache` is the folder of CodeLoading::jit_cached. Throws UsageError
/// for a setting that there is not.
OpenOptions open_options(const ProcessConfig& process_config,
                         const std::filesystem::path& jit_cache);

}  // namespace launchgap
