#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/metric.h"
#include "harness/regression/algorithm_change.h"
#include "harness/regression/check.h"
#include "harness/regression/judged_metric.h"
#include "harness/regression/measured_result.h"
#include "harness/regression/nights.h"
#include "harness/stats/compare.h"
#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

constexpr double kTailOf99 = 0.005;

/// Of positive values; absent if one is not.
std::optional<std::vector<double>> logarithms(const std::vector<double>& values) {
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    logs.push_back(std::log(value));
  }
  return logs;
}

/// now / before - 1 with its interval; absent where there are too few values, or one has no
/// logarithm.
std::optional<stats::Estimate> ratio_less_one(const std::vector<double>& now,
                                              const std::vector<double>& before) {
  const auto a = logarithms(now), b = logarithms(before);
  if (!a || !b || a->size() < kFewestRuns || b->size() < kFewestRuns) return std::nullopt;
  const auto difference = stats::difference(*a, *b, kTailOf99);
  if (!difference) return std::nullopt;
  return stats::Estimate{
      std::exp(difference->value) - 1,
      {std::exp(difference->interval.low) - 1, std::exp(difference->interval.high) - 1}};
}

std::vector<double> medians(const MetricFigures& figures) {
  std::vector<double> values;
  for (const RunFigures& run : figures.runs) values.push_back(run.median);
  return values;
}

/// How many runs of each session would make the interval as narrow as the smallest change that
/// counts, on either side, if runs vary as these do.
std::string runs_that_tell(const std::vector<double>& now,
                           const std::vector<double>& before,
                           double least) {
  constexpr int kMost = 1000;
  const double variance = std::pow(*stats::standard_deviation(now), 2) +
                          std::pow(*stats::standard_deviation(before), 2);
  for (int runs = static_cast<int>(std::max(now.size(), before.size())) + 1; runs <= kMost;
       ++runs) {
    // Where both vary alike, Welch's degrees of freedom are those of both.
    const double reach = stats::student_t(2 * (runs - 1), kTailOf99) * std::sqrt(variance / runs);
    if (reach <= std::log1p(least))
      return fmt::format("some {} runs of each session would tell", runs);
  }
  return fmt::format("more than {} runs of each session would tell", kMost);
}

std::vector<double> known(const MetricFigures& figures, std::optional<double> RunFigures::*figure) {
  std::vector<double> values;
  for (const RunFigures& run : figures.runs) {
    if (run.*figure) values.push_back(*(run.*figure));
  }
  return values;
}

void judge_spread(const MetricFigures& before, const MetricFigures& now, Result& result) {
  const struct {
    std::optional<double> RunFigures::*figure;
    SpreadFigure name;
    double least;
  } kFigures[] = {{&RunFigures::cv, SpreadFigure::within_run_cv, kLeastSpreadRatio},
                  {&RunFigures::tail, SpreadFigure::tail, kLeastTailRatio}};
  for (const auto& [figure, name, least] : kFigures) {
    const auto ratio = ratio_less_one(known(now, figure), known(before, figure));
    if (!ratio || result.steadiness == Steadiness::erratic) continue;
    const bool negligible = name == SpreadFigure::within_run_cv &&
                            std::max(now.within_run_cv().value_or(0),
                                     before.within_run_cv().value_or(0)) < kLeastSpreadCv;
    if (negligible) continue;
    const bool erratic = ratio->interval.low > 0 && 1 + ratio->value >= least;
    const bool steadier = ratio->interval.high < 0 && 1 + ratio->value <= 1 / least;
    if (!erratic && !steadier) continue;
    result.steadiness = erratic ? Steadiness::erratic : Steadiness::steadier;
    result.steadiness_reason =
        fmt::format("{} {:.1f} times that of before", name_of(name), 1 + ratio->value);
  }
}

void judge_level(const MetricFigures& before, const MetricFigures& now, Result& result) {
  const auto ratio = ratio_less_one(medians(now), medians(before));
  if (!ratio) {
    // A recorded job has one process, or as many as it has ranks.
    result.verdict = Verdict::watch;
    result.reason = fmt::format("{} and {} processes, and an interval takes {} of each",
                                before.runs.size(),
                                now.runs.size(),
                                kFewestRuns);
    if (before.value() > 0) result.change = now.value() / before.value() - 1;
    return;
  }
  result.change = ratio->value;
  result.interval = ratio->interval;
  result.minimum = least_change(before, kNightLeastChange);
  const double low = ratio->interval.low, high = ratio->interval.high;
  if (low < -*result.minimum && high > *result.minimum) {
    result.verdict = Verdict::cannot_tell;
    result.reason =
        runs_that_tell(*logarithms(medians(now)), *logarithms(medians(before)), *result.minimum);
    return;
  }
  if ((low <= 0 && high >= 0) || std::abs(ratio->value) < *result.minimum) return;
  result.verdict = *result.slowdown() > 0 ? Verdict::suspect : Verdict::faster;
}

/// Whether the p99 is beyond what differences of runs explain, and by what counts.
void judge_tail(const MetricFigures& before, const MetricFigures& now, Result& result) {
  if (metric(now.key.metric).direction != Direction::lower_is_better) return;
  const auto ratio = ratio_less_one(known(now, &RunFigures::p99), known(before, &RunFigures::p99));
  if (!ratio || !now.p99 || !before.p99 || !(*before.p99 > 0)) return;
  const double median = 1 + result.change.value_or(0);
  if (ratio->interval.low <= 0 || (1 + ratio->value) / median < kLeastTailRatio) return;
  result.tail = *now.p99 / *before.p99;
  if (result.steadiness == Steadiness::erratic) return;
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
  judge_level(*found, figures, result);
  judge_spread(*found, figures, result);
  judge_tail(*found, figures, result);
  return result;
}

/// What BASE has of a device and process configuration that NEW measured, and NEW lacks.
void add_missing(const SessionFigures& base, const SessionFigures& session, Report& report) {
  const auto configuration = [](const MetricFigures& figures) {
    const CaseKey& where = figures.key.where;
    return std::tuple(where.device, where.arm, where.setup);
  };
  for (const MetricFigures& figures : base.metrics) {
    const bool there = std::ranges::find(session.metrics, figures.key, &MetricFigures::key) !=
                       session.metrics.end();
    const bool beside = std::ranges::find(session.metrics, configuration(figures), configuration) !=
                        session.metrics.end();
    if (there || !beside || figures.key.metric.empty()) continue;
    Result missing = measured_result(base, figures);
    missing.baseline = std::exchange(missing.value, std::nullopt);
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
    throw UsageError(fmt::format("both are the session {}", base.session_id));
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
  if (std::string note = note_on_algorithms(report); !note.empty())
    report.notes.push_back(std::move(note));
  report.notes.push_back(
      "Two sessions cannot tell a change from the night: nothing is confirmed. A history "
      "(--history) or `launchgap compare` can.");
  return report;
}

}  // namespace launchgap::regression
