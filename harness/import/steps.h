// The steps of a recorded program, and how its launches vary within them and between them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/import/launches.h"
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

}  // namespace launchgap::recording
