// What a GPU did in each step and before each collective: by that the ranks of a job are compared.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/import/idleness.h"
#include "harness/import/recording.h"
#include "harness/record/job_record.h"

namespace launchgap::recording {

/// The collectives of one GPU by name; each with
/// what the GPU did from the end of all collectives before it to its start. Of the first of all
/// that is nothing: where its stretch begins no other rank knows.
std::vector<CollectiveRecord> collectives_of(const Process& process,
                                             std::uint64_t gpu,
                                             const GpuGaps& gaps);

/// What the GPU did in each step, in the order of JobRecord::steps, besides the time in which only
/// collectives ran.
StretchParts step_parts(const Process& process,
                        std::uint64_t gpu,
                        const GpuGaps& gaps,
                        std::string_view step_name);

/// Whether a range by its name is the loading of data: "enumerate(DataLoader)#…", "load_batch".
bool loads_data(std::string_view range);

}  // namespace launchgap::recording
