// What tells the samples of one process and case from all others, in records and in the report of a
// tool that watched: the payload of a sample's NVTX range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/run/job.h"

namespace launchgap {

/// Of a worker process, among those of all sessions:
/// "20261120T103455Z-783dd3/vm.host.r0.plain.launch".
std::string run_name(const job::Run& job);

/// The key of the first sample of a case in a run; the i-th has this and i. 31 bits come from both
/// names, and 32 count samples: the last bit stays zero, since SQLite's integers have a sign.
std::uint64_t first_sample_key(std::string_view run_name, std::string_view case_name);

}  // namespace launchgap
