// What a session says of each metric, and whether it may be compared: a figure per process.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/metric.h"
#include "harness/regression/fingerprint.h"
#include "harness/summary/session_data.h"

namespace launchgap::regression {

/// One process's samples of a metric, in the metric's unit.
struct RunFigures {
  int replicate = 0;
  double median = 0;
  std::optional<double> cv = {};    // within the process; of logarithms, as in summary.csv
  std::optional<double> tail = {};  // p99 / p50, from 100 samples on
  std::optional<double> p99 = {};   // of however many there are
};

struct MetricFigures {
  SeriesKey key;                 // the metric is empty where the case has no result
  std::vector<RunFigures> runs;  // by replicate
  std::optional<int> modes;      // within a process
  std::optional<double> p99;     // of all samples
  std::size_t samples = 0;
  double tick = 0;                   // smallest distance of two samples; 0: all are equal
  std::string invalid;               // why nothing of it counts; else empty
  Fingerprint fingerprint;           // of its processes
  std::set<std::string> algorithms;  // of its processes, as far as they are known

  /// Median of the processes' medians. There is one process at least, unless it is invalid.
  double value() const;
  std::optional<double> within_run_cv() const;  // median of the processes'
  /// The same; of processes that have fewer than 100 samples each, p99 / value of all.
  std::optional<double> tail() const;
  /// Standard deviation of the medians' logarithms; absent below three processes.
  std::optional<double> between_run_cv() const;
};

struct SessionFigures {
  std::string session_id, node;
  std::string begin_utc;  // of its first process: "2026-11-22T03:00:00Z"; empty if none began
  bool simulated = false;
  std::optional<double> delay_ns;  // that its calls took longer on purpose, of the last process
  std::string delay_problem;       // why that is not what was asked for; else empty
  std::map<std::string, std::string> device_names;  // by UUID
  std::map<std::string, std::string> device_nodes;  // the same; empty: all are on `node`
  std::vector<MetricFigures> metrics;               // by key
  std::string invalid;                              // why nothing of it counts; else empty

  const std::string& node_of(const std::string& device) const;
};

/// In a comparison both sides can be so.
struct Counted {
  bool simulated = false;
  bool slowed_down = false;  // on purpose, by LAUNCHGAP_DELAY_NS
};

/// Of plain runs every metric; of traced ones what only they have; of recorded ones everything.
/// Processes that show what tracing costs are left out, and so is what a device cannot do.
///
/// A metric is invalid if its case failed or was invalid in some run, if a process was throttled
/// (heat or a power brake held the clocks down for 1 % of the time or more), shared its device with
/// another process, ran under a tool, was slowed down on purpose, or if its processes have
/// different fingerprints; the session, if it is simulated, has not ended, has no result, or begins
/// in the future (by more than a day). `counted`: of what would be invalid in a history, what
/// counts here.
SessionFigures figures_of(const SessionData& session, Counted counted = {});

/// How far a metric's samples are from telling small changes: below this many ticks, one tick is
/// more than 1 % of the value.
inline constexpr double kLeastTicks = 100;

// --- Which metrics are judged at all, and which change of one is too small to count ---

/// Why no value of a metric is ever judged, in words without a full stop; absent if some are.
std::optional<std::string> why_never_judged(const std::string& metric);

/// Why a metric is only watched, in words without a full stop; absent if it is judged.
///
/// Watched is a metric that this launchgap does not know, since nothing says which direction is
/// worse; one that is computed from another, which would count one change twice; one without unit
/// (shares, counts), whose ratio says little; one with a median that is not positive and finite,
/// which has no logarithm; one whose median is below kLeastTicks ticks of its clock; and those of
/// launch/interference, which compares its own within each process.
std::optional<std::string> why_only_watched(const MetricFigures& figures);

/// The smallest change that counts, as a share of the base's value: 0.02 is 2 %. It is `share`, or
/// one tick of the clock where that is more; for times of launches on a GPU at least 100 ns. The
/// host has no such limit. The base must be one that is judged.
double least_change(const MetricFigures& base, double share);

/// Logarithms of ratios are multiplied by it: positive is then worse. The metric must be known.
double sign_of_worse(const MetricFigures& figures);

// --- What a result says before anything is compared ---

/// With key, device, value and processes. `invalid` or `watch`, with the reason, if the metric is
/// not to be compared; else `same`.
Result measured_result(const SessionFigures& session, const MetricFigures& figures);

/// Whether it is to be compared.
inline bool is_open(const Result& result) {
  return result.verdict == Verdict::same;
}

/// Why a session has nothing valid, if that is so: its own reason, or that of its first metric.
std::string invalid_as_a_whole(const SessionFigures& session, std::span<const Result> results);

}  // namespace launchgap::regression
