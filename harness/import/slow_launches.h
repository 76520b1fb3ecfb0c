// The slowest launches of a recorded process.
#pragma once

#include <string>
#include <vector>

#include "harness/import/launch_values.h"
#include "harness/record/slow_sample_record.h"

namespace launchgap::recording {

/// Of one GPU's launches, the slowest first, at most SlowSampleRecord::kPerCase. On an idle stream
/// those whose kernels came late; elsewhere a kernel waits for others, and the calls tell.
std::vector<SlowSampleRecord> slow_launches(const RecordedCase& launches);

/// Finds out how much was waiting for the GPU when each of these began.
void count_waiting(std::vector<SlowSampleRecord>& slow,
                   const Process& process,
                   const RecordedLaunches& launches,
                   std::uint64_t gpu);

}  // namespace launchgap::recording
