// What a worker process does: one job.
#pragma once

#include "harness/record/schema.h"

namespace launchgap {

/// Does what the job (job.h) asks for, and tells of it by messages (message.h). Returns
/// the exit code of the process.
int run_job(const Json& job);

}  // namespace launchgap
