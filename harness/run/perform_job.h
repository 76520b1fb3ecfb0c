// What a worker process does: one job.
#pragma once

#include <filesystem>

#include "harness/core/process_config.h"
#include "harness/device/backend.h"
#include "harness/run/job.h"

namespace launchgap {

/// Does what the job (job.h) asks for, and tells of it by messages (message.h). Returns
/// the exit code of the process.
int run_job(const Json& job);

// --- How a process opens its device ---

/// By its configuration. `jit_cache` is the folder of CodeLoading::jit_cached. Throws UsageError
/// for a setting that there is not.
OpenOptions open_options(const ProcessConfig& process_config,
                         const std::filesystem::path& jit_cache);

// --- A worker's main task: measures the cases of one run on its device, and records them ---

/// Measures and tells the parent of each step. Throws what keeps it from beginning, and WriteError
/// where nothing can be recorded; what goes wrong with a case is the case's. Does not return where
/// tearing down could crash or hang: after a sticky error, and where the process is traced.
void measure(const job::Run& job);

}  // namespace launchgap
