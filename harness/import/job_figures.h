// What an imported run says of its job beyond the samples of its cases: its kernels, first
// launches, stalls, and how launches vary by step.
#pragma once

#include <cstdint>
#include <optional>
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

// --- Whether the first launch of each kernel is slower than its later ones: what loading costs ---

/// Of the launches on one GPU whose kernel is known, by the kernel's name; graphs are none. Nothing
/// if no kernel has kLeastLater launches after its first.
///
/// Each first launch is compared with the next kLocal launches of the same kernel, so that a job
/// which becomes faster in the long run is not taken for one that loads; and next_p50_ns, of the
/// kLeastLater right after it, tells a slow beginning from slow firsts. Where the first is like
/// the m others, it is the r-th slowest of m + 1 with a chance of r / (m + 1), or less where calls
/// take equally long. The kernels' chances are combined as Fisher did: -2 Σ log chance is at most
/// chi-square with two degrees of freedom for each kernel.
std::optional<FirstLaunches> first_launches(const Process& process,
                                            const RecordedLaunches& launches,
                                            std::uint64_t gpu);

inline constexpr std::size_t kLeastLater = 5;
inline constexpr std::size_t kLocal = 100;

}  // namespace launchgap::recording
