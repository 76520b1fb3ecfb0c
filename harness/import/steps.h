// The steps of a recorded program, and how its launches vary within them and between them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/import/idleness.h"
#include "harness/import/launches.h"
#include "harness/import/recording.h"
#include "harness/record/job_record.h"

namespace launchgap::recording {

struct Step {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t number = 0;  // JobRecord::steps
};

/// Ranges of that name, or with "#" and a number behind it; by begin. "ProfilerStep#12" is a step
/// named ProfilerStep.
std::vector<Step> steps_of(const Process& process, std::string_view name);

/// Of the launches on one GPU that began in a step: of those on idle streams the time to the
/// kernel, where the clocks agree, and of all the time of the call.
std::vector<StepVariation> step_variation(const Process& process,
                                          const RecordedLaunches& launches,
                                          std::uint64_t gpu,
                                          const std::vector<Step>& steps,
                                          bool clocks_agree);

// --- What a GPU did in each step and before each collective: by that the ranks of a job are
// compared ---

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
