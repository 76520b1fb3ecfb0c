// The slowest launches of a recorded process.
#pragma once

#include <string>
#include <vector>

#include "harness/record/slow_sample_record.h"
#include "harness/recording/launch_values.h"

namespace launchgap::recording {

/// The slowest first, at most SlowSampleRecord::kPerCase. On an idle stream those whose kernels
/// came late; elsewhere a kernel waits for others, and the calls tell. `events` is the name of the
/// file of events.
std::vector<SlowSampleRecord> slow_launches(const RecordedCase& launches,
                                            const std::string& events);

}  // namespace launchgap::recording
