// What a session will do: which runs, each with which cases, in which order. The order is random
// and comes from a recorded seed, so that neither heat nor time of day favours one device or one
// case.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/process_config.h"

namespace launchgap {

enum class Profile { quick, nightly, full };

/// All of them, the quickest first.
const std::vector<std::string>& profile_names();

std::string_view name_of(Profile profile);
Profile parse_profile(std::string_view text);  // throws UsageError that lists the profiles
int default_runs(Profile profile);             // quick 3, nightly 10, full 20

/// How long a case may say nothing, at least, where `--timeout` was not given.
inline constexpr double kUsualTimeoutS = 120;

enum class Arm { plain, traced };
std::string_view name_of(Arm arm);
Arm parse_arm(std::string_view text);  // throws Error
/// What stands in the column `arm`, and for `process_config` and `trace_state` too, where nothing
/// was run: of what somebody else recorded.
inline constexpr std::string_view kRecorded = "recorded";
/// The same of what somebody else has published.
inline constexpr std::string_view kPublished = "published";

/// Estimated cost of starting a worker on a GPU: process, libraries, context, warm-up.
inline constexpr double kSecondsPerRun = 0.5;

/// A case as the plan knows it.
struct PlannedCase {
  std::string name;
  double seconds = 0;  // estimate, for the plan's time and the progress line
};

/// A family of benchmarks with one set of process-wide settings, on one device.
struct Workload {
  std::string device;  // UUID
  ProcessConfig process_config;
  Arm arm = Arm::plain;
  int runs = 1;
  bool alone = false;  // whether nothing else may run meanwhile
  std::vector<PlannedCase> cases;
  double start_seconds = kSecondsPerRun;  // estimate of what a process takes beside its cases
  bool random_order = false;              // of the cases, in each process another one
};

/// One worker process.
struct PlannedRun {
  std::string device;
  ProcessConfig process_config;
  Arm arm = Arm::plain;
  int replicate = 0;
  std::vector<PlannedCase> cases;  // in the order in which they run
  double start_seconds = kSecondsPerRun;
  bool alone = false;  // nothing else may run meanwhile
};

/// Runs that may go side by side, one per device; a batch ends before the next begins.
using Batch = std::vector<PlannedRun>;

struct Plan {
  std::uint64_t seed = 0;
  std::vector<Batch> batches;
  bool random_order = false;  // of the cases of every run, in each another one

  /// Of all batches, in their order; valid as long as the plan.
  std::vector<const PlannedRun*> runs() const;
  std::size_t run_count() const;
  std::size_t largest_batch() const;
  /// Estimate of the whole, where so many runs of a batch go side by side: each needs a CPU.
  double seconds(std::size_t at_once) const;
  double start_seconds_per_run() const;  // mean over the runs; 0 without any
};

/// Orders the runs of every workload. Workloads that must be alone are batches of one; the others
/// of one process configuration, arm and replicate share a batch, each on its own device. The order
/// is random within a replicate, and replicate n of every workload comes before replicate n + 1 of
/// any, so that a machine that drifts drifts for all of them alike. For the same reason cases are
/// rotated by replicate or, where neighbours in the order are compared, put into a random order.
Plan make_plan(const std::vector<Workload>& workloads, std::uint64_t seed);

/// A seed that depends on the whole path of numbers and on nothing else, for streams of random
/// numbers that must not depend on each other.
std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

/// Puts values into a random order, the same wherever the seed is: std::shuffle's result is not the
/// same in every standard library.
template <class Values>
void shuffle(Values& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

}  // namespace launchgap
