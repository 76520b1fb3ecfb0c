// What a worker process does: one job, on one device.
#pragma once

#include "harness/record/schema.h"

namespace launchgap {

/// Jobs, by "task":
///   probe       lists the devices of a backend
///   initialise  opens a device once and says how long that took
///   find-tracing  says why CUPTI cannot be loaded, if so
///   keep        keeps the driver open until it is killed
///   run         measures cases and records them
/// Reports by send_message. Returns the exit code of the process.
int run_job(const Json& job);

}  // namespace launchgap
