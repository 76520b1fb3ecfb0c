// What the replays of recorded steps say: how far they agree with the recording, what binds the
// step on each device, and what it would take with another generation's launches and kernels.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/pattern.h"
#include "harness/rules/ratio.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// What a step would gain most by, if it took no time at all.
enum class BoundBy {
  work,         // of the device
  program,      // the host's own time between its calls
  launches,     // calls, starts of work and returns from waits
  allocations,  // calls that take memory or give it back
  several,      // nothing alone: each is hidden behind another
  unknown,
};
std::string_view name_of(BoundBy bound);

/// One pattern in one mode on one device and arm.
struct PatternRow {
  CaseKey key;
  const Pattern* pattern = nullptr;
  std::size_t runs = 0, samples = 0;
  double p50_ns = 0;
  std::optional<double> calls_ns, waits_ns, allocations_ns, kernel_excess_ns,
      copy_factor;  // medians
  /// By the recorded time, where kernels last as long as they did and the step's end is known.
  std::optional<rules::PooledRatio> agreement;

  /// Of the mode `eager`, by how much shorter the step would be (modelled_ns) if one of its parts
  /// took no time; nothing where that cannot be told.
  struct Savings {
    double total_ns = 0;       // of the step
    double work_alone_ns = 0;  // what would be left without program and launching
    double work_ns = 0, program_ns = 0, launches_ns = 0, allocations_ns = 0;
  };
  std::optional<Savings> savings;
  BoundBy bound_by = BoundBy::unknown;
  std::vector<BoundBy> bound_in_runs;  // the same by the median of each run
  /// What kRunsForAClaim runs or more agree on; else unknown.
  BoundBy certain_bound() const;

  std::optional<rules::Ratio> by_eager;  // of the other modes, by the mode `eager`
};

/// In the order of the session's patterns.
std::vector<PatternRow> pattern_rows(const SessionData& session,
                                     const std::vector<SummaryRow>& rows);

/// The largest of the savings; `several` where that is less than kLeastSaving of the step;
/// `unknown` where the work and the program's time take longer than all of it did, by more than
/// kMostShort of it.
BoundBy bound_of(const PatternRow::Savings& savings);
inline constexpr double kLeastSaving = 0.05, kMostShort = 0.05;
/// Whether a device can do the work of all of a pattern's streams at once: what they wait for each
/// other would else count as launching.
bool runs_streams_at_once(const Pattern& pattern, const DeviceFacts& device);
/// Why nothing can be concluded from a pattern, after "… cannot be told: "; empty where it can. As
/// its origin says, or because the walk with its calls as they were recorded is more than 10 % off
/// what was recorded: there is something in the step that is not in the pattern.
std::string why_not_told(const Pattern& pattern);
/// That walk by the recorded time; nothing where that is not known, or kernels last another time.
std::optional<double> model_agreement(const Pattern& pattern);

/// What its calls took that do not wait, in nanoseconds.
std::int64_t recorded_calls_ns(const Pattern& pattern);

// --- Another generation ---

/// What launching costs on a model of GPU, and where that is from.
struct GenerationCosts {
  std::string gpu;                       // as data/generations.csv has it
  double call_ns = 0, roundtrip_ns = 0;  // of an empty kernel
  bool published = false;                // else of recordings, with what the recorder costs
  double tflops = 0, bandwidth_gbs = 0;  // of plain FP32; of memory
};

/// Of all models of data/generations.csv of which both are known, oldest first.
const std::vector<GenerationCosts>& generation_costs();

/// A pattern as it would be with another GPU's launches and kernels.
struct PredictedPattern {
  const Pattern* pattern = nullptr;
  const GenerationCosts* costs = nullptr;
  /// Kernels last so many times as long as they did, if they are bound by memory or by arithmetic;
  /// the lesser first.
  double kernel_factor_lo = 1, kernel_factor_hi = 1;
  double lo_ns = 0, hi_ns = 0;
  /// The same walk with calls as they were recorded, by the recorded time: its own error.
  std::optional<double> model_agreement;
  BoundBy bound_lo = BoundBy::unknown, bound_hi = BoundBy::unknown;
};

/// Of each pattern whose GPU is in data/generations.csv.
std::vector<PredictedPattern> predicted_patterns(const SessionData& session);

/// Of each pattern on each device, by its plain runs: what binds it, whether graphs are faster, and
/// how far its replay agrees with the recording.
std::vector<Finding> pattern_findings(const SessionData& session,
                                      const std::vector<PatternRow>& rows);

// --- What a pattern takes with launches of given costs, by a model of streams ---

/// In nanoseconds.
struct LaunchCosts {
  /// Of a call that brings work to the device; nothing: each as it was recorded.
  std::optional<double> call_ns;
  /// Of a call that allocates or gives back; nothing: each as it was recorded.
  std::optional<double> allocation_ns;
  double start_ns = 0;       // from the end of the call to the start of its work, on an idle stream
  double wake_ns = 0;        // from the end of the work to the return of a wait for it
  double gap_factor = 1;     // of the host's own time
  double kernel_factor = 1;  // of the time of kernels
  double kernel_excess_ns = 0;  // that each kernel lasts longer
  double copy_factor = 1;       // of the time of copies and fills
};

/// No calls, no starts, no waking; allocations take so long each: only these, the host's own time
/// and the device's work.
LaunchCosts free_launches(double allocation_ns = 0);
/// And no time of the host: the work alone, in the order that streams, events and waits give it.
LaunchCosts work_alone();

/// From the beginning of the pattern to the end of all of its work, in nanoseconds. A stream does
/// its work in order, and takes kLaunchQueue launches ahead; streams do not slow each other down. A
/// graph begins behind the stream of its first work, which goes on when all of it has ended.
double modelled_ns(const Pattern& pattern, const LaunchCosts& costs);

/// Launches that a stream holds before a launch call waits for the first of them.
inline constexpr std::size_t kLaunchQueue = 1023;

}  // namespace launchgap
