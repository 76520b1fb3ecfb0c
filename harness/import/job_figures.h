// What an imported run says of its job beyond the samples of its cases: its kernels, first
// launches, stalls, and how launches vary by step.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/import/idleness.h"
#include "harness/import/launches.h"
#include "harness/record/job_record.h"
#include "harness/record/trace_record.h"

namespace launchgap::recording {

struct JobFigures {
  JobRecord record;
  std::vector<CountedKernels> kernels;
};

/// Of what one GPU did for a process; without what its gaps tell. With `and_unknown`, launches
/// whose kernel is lost are taken for this GPU's.
JobFigures job_figures(const Process& process,
                       const RecordedLaunches& launches,
                       std::uint64_t gpu,
                       bool and_unknown,
                       std::int64_t tick_ns,
                       std::string_view step_name,
                       bool clocks_agree);

/// Adds what the GPU waited for while it was idle.
void add_gaps(JobRecord& record, const Process& process, const GpuGaps& gaps);

}  // namespace launchgap::recording
