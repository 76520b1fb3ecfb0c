// What a session's numbers say, beyond a row per metric: how much of them varies where, devices
// that differ from their kind, what tracing costs, and where a launch's time goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/plan.h"
#include "harness/stats/stats.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// Where samples vary: of one device within and between its runs, or of a kind between its devices.
/// Of a recorded run, the samples of a step and the steps are told apart too.
enum class VariationLevel { launches, steps, samples, runs, devices };
std::string_view name_of(VariationLevel level);

/// How much of a metric's variation arises at one level.
struct Variation {
  std::string scope;  // a device's UUID, or the name that devices of a kind share
  CaseKey key;        // the device is empty where the scope is a kind
  std::string metric;
  VariationLevel level;
  std::size_t groups = 0;          // steps, runs, or devices
  stats::Estimate cv;              // coefficient of variation, with its 95 % interval
  std::optional<int> replicate{};  // the recorded run, of launches and steps
  /// Of the variance of the logarithms at this level and all others that this one does not contain.
  double share = 0;
};

/// Levels of every metric of plain runs, and of what only traced runs tell. A level needs two
/// groups.
std::vector<Variation> variations(const SessionData& session, const std::vector<SummaryRow>& rows);

/// A device that differs from the others of its kind.
struct OutlierDevice {
  std::string device;
  CaseKey key;
  std::string metric;
  double ratio = 1;  // its level to that of the others
  stats::Interval interval{1, 1};
};

/// Devices of one name whose run medians differ from the others' by more than 2 % and by more than
/// chance would in any of the metrics that they have; plain runs.
std::vector<OutlierDevice> outlier_devices(const SessionData& session,
                                           const std::vector<SummaryRow>& rows);

/// What tracing adds to a metric of the host's clock: the difference of means of run medians
/// between traced and plain processes, with Welch's 95 % interval.
struct ObserverEffect {
  std::string device;
  CaseName name;
  std::string metric;
  TraceLevel level;
  std::size_t plain_runs = 0, traced_runs = 0;
  double plain = 0, traced = 0;           // means of run medians, whose difference the effect is
  std::optional<stats::Estimate> effect;  // in the metric's unit; absent below two runs of either
};
std::vector<ObserverEffect> observer_effects(const std::vector<SummaryRow>& rows);

/// The parts of a traced launch around one quantile of its time from call to end of the kernel.
/// Their sum is that time: each is the mean over the samples nearest to the quantile.
struct LaunchParts {
  std::string device;
  CaseName name;
  std::string quantile;  // "p50", "p99", "p999"
  std::size_t samples = 0;
  double call_ns = 0;   // in the call, before the kernel began
  double queue_ns = 0;  // after the call, before the kernel began
  double kernel_ns = 0;
  double overhead_ns = 0;  // of call and queue, what overhead records cover
};
std::vector<LaunchParts> launch_parts(const SessionData& session);

/// Whether the flag that a kernel raises agrees with the trace: never seen before the kernel began,
/// in any run, also one that is invalid for it; and later by no more than a flag's way there and
/// back, and 1 µs.
struct FlagCheck {
  std::string device;
  std::size_t samples = 0;
  std::size_t before_kernel = 0;
  double excess_p50_ns = 0;
  double limit_ns = 0;  // the echo's median and 1 µs
  bool agrees = false;
};
std::vector<FlagCheck> flag_checks(const SessionData& session);

}  // namespace launchgap
