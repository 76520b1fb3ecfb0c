// What a recorded job comes to: what it waits for, in a word, and where its launch time goes. The
// terminal, recordings.csv, the page and `import --json` say the same.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/json.h"
#include "harness/summary/recorded_process.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// What a recorded job waits for.
enum class JobVerdict {
  device_bound,
  launch_bound,
  wait_bound,
  allocation_bound,
  call_bound,
  program_bound,
  held_up,
  mixed,
  not_known,
  clocks_disagree,
  no_kernels,
  too_short,
  no_launches,
  allocations_only,
};

struct JobVerdictInfo {
  std::string_view name, meaning;
};
/// All of them, in the order of the enumeration.
std::span<const JobVerdictInfo> job_verdicts();
std::string_view name_of(JobVerdict verdict);

/// Of one process on one GPU.
struct JobAnswer {
  JobVerdict verdict = JobVerdict::not_known;
  std::string sentence;  // why
  std::string
      launches;  // how many, how long, and where their time goes; empty where there are none
  std::optional<double> idle_share;     // of the GPU; nothing where the verdict may not rest on it
  std::optional<double> unknown_share;  // RecordedProcess::unknown_share
  std::optional<double> launch_share;   // RecordedProcess::launch_share
};
JobAnswer answer_of(const RecordedProcess& process);

/// The metrics of what a GPU waits for.
std::vector<std::string_view> idle_metrics();

/// Where the launch time goes: "usual 96 %, first launches 0.9 % (1 launch)".
std::string tail_text(const LaunchTail& tail);

/// What `import` answers: at most `most_lines` lines of at most `width` columns.
std::string job_text(const SessionData& session, std::size_t most_lines, std::size_t width = 100);
Json job_json(const SessionData& session);

}  // namespace launchgap
