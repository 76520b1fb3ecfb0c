// `launchgap health`: whether the GPUs of this node may be given work, in one line and a code as
// Nagios, Slurm and others have it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/device/facts.h"

namespace launchgap::fleet {

/// In the order of Nagios, whose codes they are.
enum class HealthState { ok, warning, critical, unknown };
std::string_view name_of(HealthState state);  // "OK"

/// Launch and wait of one GPU, in nanoseconds, and what it is held to. Absent: not known.
struct GpuHealth {
  DeviceFacts device;
  std::optional<double> roundtrip_ns;  // median of one process
  std::optional<double> history_ns;    // the best night of this GPU
  /// What is published of its model to what the same method gives here: 0.5 is half as fast.
  std::optional<double> published_score;
  std::string problem;  // why it cannot be used; else empty
  std::string busy;     // why it was not measured, though it may be well
};

struct NodeHealth {
  std::string node;
  std::vector<GpuHealth> gpus;
  std::vector<Finding> findings;  // of the doctor
  std::optional<int> expected_gpus;
  std::string problem;          // why the rest could not be looked at; else empty
  std::string not_measured;     // why no launch was timed; else empty
  std::string history_problem;  // why its nights are not known, though they were to be
};

struct HealthAnswer {
  HealthState state = HealthState::ok;
  std::string line;  // with what was measured behind a '|', as Nagios reads it
};

/// A share of the speed that is expected below which a GPU is too slow, and below which it must not
/// be used. The first is the threshold of nvidia-resiliency-ext for its scores. What is published
/// was measured on other machines, whose CPUs differ: half of that is a warning, and no more.
inline constexpr double kWarningScore = 0.75, kCriticalScore = 0.5, kPublishedScore = 0.5;

/// How fast a GPU is beside what is expected, from 0 on, 1 is as fast. The lesser of: its best
/// night / now (the individual score of nvidia-resiliency-ext), and the median of those of its name
/// on the node / its own (its relative score takes the fastest, which would be the first of three
/// by chance; of three at least). Nothing where neither is known. `of_what` says by which.
std::optional<double> score_of(const GpuHealth& gpu,
                               const std::vector<GpuHealth>& all,
                               std::string& of_what);

/// Critical is: a GPU that cannot be used or is missing, one below kCriticalScore, memory whose
/// errors could not be corrected, and what the doctor finds that prevents work on all. A warning
/// is: one below kWarningScore, one that was not measured though nobody had it, memory that waits
/// for a reset to be repaired, and what the doctor finds that prevents work otherwise. Unknown is a
/// machine without GPUs of which none are expected.
HealthAnswer judge(const NodeHealth& node);

struct HealthOptions {
  std::filesystem::path history;  // empty: none
  std::optional<int> expected_gpus;
  double limit_s = 30;  // for all of it
};

/// Looks at this node, whatever CUDA_VISIBLE_DEVICES shows of it: the doctor, then each GPU is
/// opened, then launches on those that nobody measures. Leaves nothing behind, unless it is killed.
/// Takes `limit_s` at most; what did not answer by then is named.
NodeHealth examine_node(const HealthOptions& options);

}  // namespace launchgap::fleet
