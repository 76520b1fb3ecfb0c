// What is told of each launch and each step of a recorded process: one column per metric of the
// benchmarks `recorded/…`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/block.h"
#include "harness/import/idleness.h"
#include "harness/import/launches.h"
#include "harness/record/records.h"

namespace launchgap::recording {

/// Cases are written in blocks of so many samples.
inline constexpr std::size_t kSamplesPerBlock = 8192;

/// The samples of one case, by begin.
struct RecordedCase {
  std::string name;  // "recorded/launch/stream:idle"
  std::vector<std::int64_t> begin_ns;
  std::int64_t end_ns = 0;      // of the last
  std::vector<Column> columns;  // without those of which nothing is known
};

/// The launches whose kernels ran on this GPU, and with `and_unknown` those without kernels too.
/// Without `clocks_agree` no time reaches from a call to a kernel, and no stream is known to be
/// idle.
std::vector<RecordedCase> launch_cases(const Process& process,
                                       const RecordedLaunches& launches,
                                       std::uint64_t gpu,
                                       bool and_unknown,
                                       bool clocks_agree);

/// Steps of the program (steps_of), and the recording as a whole, each with what the GPU did
/// meanwhile: `recorded/step` and `recorded/job`.
std::vector<RecordedCase> step_cases(const Process& process,
                                     std::uint64_t gpu,
                                     const GpuGaps& gaps,
                                     std::string_view step_name);

// --- The slowest launches of a recorded process ---

/// Of one GPU's launches, the slowest first, at most SlowSampleRecord::kPerCase. On an idle stream
/// those whose kernels came late; elsewhere a kernel waits for others, and the calls tell.
std::vector<SlowSampleRecord> slow_launches(const RecordedCase& launches);

/// Finds out how much was waiting for the GPU when each of these began.
void count_waiting(std::vector<SlowSampleRecord>& slow,
                   const Process& process,
                   const RecordedLaunches& launches,
                   std::uint64_t gpu);

}  // namespace launchgap::recording
