// What a worker process does: one job, on one device.
#pragma once

#include "harness/record/schema.h"

namespace launchgap {

/// Does what the job's "task" names; worker.cpp lists the tasks. Reports by send_message. Returns
/// the exit code of the process.
int run_job(const Json& job);

}  // namespace launchgap
