#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/metric.h"
#include "harness/regression/check.h"
#include "harness/rules/nights.h"
#include "harness/rules/two_sessions.h"

namespace launchgap::regression {
namespace {

rules::SessionProcesses processes_of(const MetricFigures& figures) {
  rules::SessionProcesses processes;
  for (const RunFigures& run : figures.runs) {
    processes.medians.push_back(run.median);
    if (run.cv) processes.cvs.push_back(*run.cv);
    if (run.tail) processes.tails.push_back(*run.tail);
    if (run.p99) processes.p99s.push_back(*run.p99);
  }
  processes.within_run_cv = figures.within_run_cv();
  processes.p99 = figures.p99;
  return processes;
}

void judge_change(const MetricFigures& before,
                  const MetricFigures& now,
                  const rules::SessionProcesses& then,
                  const rules::SessionProcesses& own,
                  Result& result) {
  const double least = least_change(before, rules::kNightLeastChange);
  const auto level = rules::judge_level(then, own, sign_of_worse(now), least);
  if (!level) {
    // A recorded job has one process, or as many as it has ranks.
    result.verdict = Verdict::watch;
    result.reason = fmt::format("{} and {} processes, and an interval takes {} of each",
                                before.runs.size(),
                                now.runs.size(),
                                rules::kFewestRuns);
    if (before.value() > 0) result.change = now.value() / before.value() - 1;
    return;
  }
  result.change = level->change;
  result.interval = level->interval;
  result.minimum = least;
  result.verdict = level->verdict;
  result.reason = level->reason;
}

void judge_steadiness(const rules::SessionProcesses& then,
                      const rules::SessionProcesses& own,
                      Direction direction,
                      Result& result) {
  rules::SpreadVerdict spread = rules::judge_spread(then, own);
  if (spread.steadiness != Steadiness::same) {
    result.steadiness = spread.steadiness;
    result.steadiness_reason = std::move(spread.reason);
  }
  if (direction != Direction::lower_is_better) return;
  result.tail = rules::judge_tail(then, own, result.change.value_or(0));
  if (!result.tail || result.steadiness == Steadiness::erratic) return;
  result.steadiness = Steadiness::erratic;
  result.steadiness_reason = fmt::format("p99 {:.1f} times that of before", *result.tail);
}

/// Why there is nothing to compare with.
std::string why_no_baseline(const SessionFigures& base, const MetricFigures& figures) {
  if (base.device_names.contains(figures.key.where.device))
    return fmt::format("{} has not measured it", base.session_id);
  std::vector<std::string> devices;
  for (const auto& [uuid, name] : base.device_names)
    devices.push_back(fmt::format("{} ({})", name, uuid));
  return fmt::format("{} has another device: {}",
                     base.session_id,
                     devices.empty() ? "none" : fmt::to_string(fmt::join(devices, ", ")));
}

Result compare(const SessionFigures& base,
               const SessionFigures& session,
               const MetricFigures& figures,
               const Across& across) {
  Result result = measured_result(session, figures);
  if (!is_open(result)) return result;
  const auto found = std::ranges::find(base.metrics, figures.key, &MetricFigures::key);
  const auto without = [&](std::string reason) {
    result.verdict = Verdict::no_baseline;
    result.reason = std::move(reason);
    return result;
  };
  if (found == base.metrics.end()) return without(why_no_baseline(base, figures));
  const Result before = measured_result(base, *found);
  result.baseline = before.value;
  result.baseline_p99 = before.p99;
  result.compared_with = before.runs;
  if (!is_open(before)) {
    without(fmt::format("{}: {}", base.session_id, before.reason));
    if (base.invalid.empty() && before.verdict == Verdict::invalid)
      result.verdict = Verdict::invalid;
    return result;
  }
  const std::vector<KeyChange> changes = differences(found->fingerprint, figures.fingerprint);
  result.changed = told_once(changes);
  EarlierAlgorithms earlier;
  earlier.add(found->algorithms);
  result.algorithm = earlier.change_to(figures.algorithms);
  if (!comparable(changes, across))
    return without(fmt::format("its fingerprint differs: {}", text_of(result.changed)));
  const rules::SessionProcesses then = processes_of(*found), own = processes_of(figures);
  judge_change(*found, figures, then, own, result);
  judge_steadiness(then, own, metric(figures.key.metric).direction, result);
  return result;
}

/// What BASE has of a device and process configuration that NEW measured, and NEW lacks.
void add_missing(const SessionFigures& base, const SessionFigures& session, Report& report) {
  const auto configuration = [](const MetricFigures& figures) {
    const CaseKey& where = figures.key.where;
    return std::tuple(where.device, where.arm, where.process_config);
  };
  for (const MetricFigures& figures : base.metrics) {
    const bool there = std::ranges::find(session.metrics, figures.key, &MetricFigures::key) !=
                       session.metrics.end();
    const bool beside = std::ranges::find(session.metrics, configuration(figures), configuration) !=
                        session.metrics.end();
    const bool failed = std::ranges::any_of(session.metrics, [&](const MetricFigures& one) {
      return one.key.metric.empty() && one.key.where == figures.key.where;
    });  // which is said already
    if (there || !beside || failed || figures.key.metric.empty()) continue;
    Result missing = measured_result(base, figures);
    missing.baseline = std::exchange(missing.value, std::nullopt);
    missing.baseline_p99 = std::exchange(missing.p99, std::nullopt);
    missing.compared_with = std::exchange(missing.runs, 0);
    missing.verdict = Verdict::invalid;
    missing.reason = fmt::format("not measured, and {} has it", base.session_id);
    report.results.push_back(std::move(missing));
  }
  for (const auto& [uuid, name] : base.device_names) {
    if (!session.device_names.contains(uuid))
      report.notes.push_back(fmt::format("{} ({}) is in {} alone.", name, uuid, base.session_id));
  }
  std::ranges::sort(report.results, {}, &Result::key);
}

}  // namespace

Report check_two_sessions(const SessionFigures& base,
                          const SessionFigures& session,
                          const CheckOptions& options) {
  if (base.session_id == session.session_id)
    throw UsageError("both are the session {}", base.session_id);
  Report report;
  report.kind = Kind::sessions;
  report.strictness = options.strictness;
  report.base = base.session_id;
  report.subject = session.session_id;
  report.session_id = session.session_id;
  report.begin_utc = session.begin_utc;
  std::vector<Result> measured;
  for (const MetricFigures& figures : session.metrics) {
    measured.push_back(measured_result(session, figures));
    report.results.push_back(compare(base, session, figures, options.across));
  }
  report.invalid = invalid_as_a_whole(session, measured);
  if (report.invalid.empty()) add_missing(base, session, report);
  if (!base.begin_utc.empty() && base.begin_utc > session.begin_utc)
    report.notes.push_back(fmt::format("{} is the later one of the two.", base.session_id));
  note_algorithms(report);
  report.notes.push_back(
      "Two sessions cannot tell a change from the night: nothing is confirmed. A history "
      "(--history) or `launchgap compare` can.");
  return report;
}

}  // namespace launchgap::regression
