#include "harness/regression/judged_metric.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/device/backend.h"
#include "harness/rules/two_sessions.h"

namespace launchgap::regression {
namespace {

constexpr double kLeastOfLaunchNs = 100;

bool is_launch_on_gpu(const MetricFigures& figures) {
  return figures.key.where.name.family() == "launch" && unit_of(figures.key.metric) == "ns" &&
         backend_of_uuid(figures.key.where.device).is_gpu;
}

/// A recorded job is one process, or as many as it has ranks.
bool too_few(const MetricFigures& figures) {
  return figures.key.where.arm != kRecorded && figures.runs.size() < rules::kFewestRuns;
}

}  // namespace

std::optional<std::string> why_never_judged(const std::string& metric) {
  const Metric* const known = find_metric(metric);
  if (!known) return "this launchgap does not know the metric";
  if (!known->function_of.empty())
    return fmt::format("it is computed from {}, which is judged", known->function_of);
  if (known->unit == "1") return "it has no unit, and its ratio says little";
  return std::nullopt;
}

std::optional<std::string> why_only_watched(const MetricFigures& figures) {
  if (auto why = why_never_judged(figures.key.metric)) return why;
  if (figures.key.where.name.benchmark == "launch/interference")
    return "it is compared with quiet launches of the same process, in interference.csv";
  if (figures.runs.empty()) return "it has no values";
  for (const RunFigures& run : figures.runs) {
    if (!std::isfinite(run.median)) return "a median of it is not finite";
    if (!(run.median > 0)) return "a median is 0 or negative, so no ratio can be formed";
  }
  const double value = figures.value();
  if (value < kLeastTicks * figures.tick) {
    return fmt::format("its median is {:.3g} ticks of {:.3g} {}: one tick is {:.1f} % of it",
                       value / figures.tick,
                       figures.tick,
                       unit_of(figures.key.metric),
                       100 * figures.tick / value);
  }
  return std::nullopt;
}

double least_change(const MetricFigures& base, double share) {
  const double value = base.value();
  const double least = is_launch_on_gpu(base) ? kLeastOfLaunchNs : 0;
  return std::max({share, base.tick / value, least / value});
}

double sign_of_worse(const MetricFigures& figures) {
  return metric(figures.key.metric).direction == Direction::lower_is_better ? 1 : -1;
}

Result measured_result(const SessionFigures& session, const MetricFigures& figures) {
  Result result;
  result.key = figures.key;
  result.node = session.node_of(figures.key.where.device);
  const auto name = session.device_names.find(figures.key.where.device);
  if (name != session.device_names.end()) result.device_name = name->second;
  result.runs = figures.runs.size();
  if (!figures.runs.empty()) result.value = figures.value();
  result.p99 = figures.p99;
  if (!session.invalid.empty()) {
    result.verdict = Verdict::invalid;
    result.reason = session.invalid;
  } else if (!figures.invalid.empty()) {
    result.verdict = Verdict::invalid;
    result.reason = figures.invalid;
  } else if (too_few(figures)) {
    // Few processes are traced unless many are measured; that is no fault of the session.
    result.verdict =
        figures.key.where.arm == name_of(Arm::plain) ? Verdict::invalid : Verdict::watch;
    result.reason =
        fmt::format("{} of {} processes that it takes", figures.runs.size(), rules::kFewestRuns);
  } else if (const auto why = why_only_watched(figures)) {
    result.verdict = Verdict::watch;
    result.reason = *why;
  }
  return result;
}

std::string invalid_as_a_whole(const SessionFigures& session, std::span<const Result> results) {
  if (!session.invalid.empty()) return session.invalid;
  const auto is_invalid = [](const Result& result) { return result.verdict == Verdict::invalid; };
  if (results.empty() || !std::ranges::all_of(results, is_invalid)) return "";
  return fmt::format("no metric of it is valid; the first: {}", results.front().reason);
}

}  // namespace launchgap::regression
