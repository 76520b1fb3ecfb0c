#include "harness/regression/measured_result.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/regression/check.h"
#include "harness/regression/judged_metric.h"
#include "harness/rules/two_sessions.h"

namespace launchgap::regression {
namespace {

/// A recorded job is one process, or as many as it has ranks.
bool too_few(const MetricFigures& figures) {
  return figures.key.where.arm != kRecorded && figures.runs.size() < rules::kFewestRuns;
}

}  // namespace

Result measured_result(const SessionFigures& session, const MetricFigures& figures) {
  Result result;
  result.key = figures.key;
  result.node = session.node;
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
