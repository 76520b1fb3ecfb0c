#include "harness/regression/paired_metrics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/stats/stats.h"

namespace launchgap::regression {
namespace {

using FiguresByKey = std::map<SeriesKey, const MetricFigures*>;

FiguresByKey by_key(const SessionFigures& session, const CaseKey* compared_as) {
  FiguresByKey figures;
  for (const MetricFigures& metric : session.metrics) {
    SeriesKey key = metric.key;
    if (compared_as) key.where = *compared_as;
    figures[key] = &metric;
  }
  return figures;
}

const MetricFigures* at(const FiguresByKey& figures, const SeriesKey& key) {
  const auto found = figures.find(key);
  return found == figures.end() ? nullptr : found->second;
}

/// Why a side's figures of a pair do not count; empty if they do. `before`: those of earlier pairs.
std::string problem_of(const MetricFigures* figures, const MetricFigures& before) {
  if (!figures) return "no result";
  if (!figures->invalid.empty()) return figures->invalid;
  if (figures->runs.size() != 1)
    return fmt::format("{} processes, where one was to be", figures->runs.size());
  if (before.runs.empty()) return "";
  const auto changes = told_once(differences(before.fingerprint, figures->fingerprint));
  return changes.empty() ? "" : "its processes differ: " + text_of(changes);
}

/// Adds a process to those of its side.
void take(MetricFigures& side,
          const MetricFigures& figures,
          std::vector<rules::ProcessSpread>& spread,
          std::vector<double>& p99) {
  if (side.runs.empty()) side.fingerprint = figures.fingerprint;
  side.algorithms.insert(figures.algorithms.begin(), figures.algorithms.end());
  RunFigures run = figures.runs.front();
  run.replicate = static_cast<int>(side.runs.size());
  spread.push_back({run.median, run.cv, run.tail, figures.modes});
  if (figures.p99) p99.push_back(*figures.p99);
  side.runs.push_back(run);
  if (figures.tick > 0 && (side.tick == 0 || figures.tick < side.tick)) side.tick = figures.tick;
}

}  // namespace

void PairedMetrics::add(const SessionFigures& a,
                        const SessionFigures& b,
                        const CaseKey* compared_as) {
  ++pairs_;
  node_ = b.node;
  device_names_.insert(b.device_names.begin(), b.device_names.end());
  simulated_ = simulated_ || (a.simulated && b.simulated);
  if (a.simulated != b.simulated)
    mixed_ = fmt::format("{} is simulated, and the other is not", a.simulated ? "A" : "B");
  const FiguresByKey of_a = by_key(a, compared_as), of_b = by_key(b, compared_as);
  for (const FiguresByKey* side : {&of_a, &of_b}) {
    for (const auto& [key, figures] : *side) {
      const bool in_both = of_a.contains(key) && of_b.contains(key);
      if (compared_as && !in_both && !key.metric.empty()) continue;
      series_[key].a.key = series_[key].b.key = key;
    }
  }
  for (auto& [key, series] : series_) add_pair(series, at(of_a, key), at(of_b, key));
}

void PairedMetrics::add_pair(Series& series, const MetricFigures* a, const MetricFigures* b) {
  const std::string of_a = problem_of(a, series.a), of_b = problem_of(b, series.b);
  if (!of_a.empty() || !of_b.empty()) {
    if (series.problem.empty()) {
      series.problem = fmt::format(
          "{} (pair {}, {})", of_a.empty() ? of_b : of_a, pairs_, of_a.empty() ? "B" : "A");
    }
    return;
  }
  take(series.a, *a, series.spread_a, series.p99_a);
  take(series.b, *b, series.spread_b, series.p99_b);
  const double ratio = series.b.runs.back().median / series.a.runs.back().median;
  series.log_ratios.push_back(std::log(ratio));
}

/// The geometric mean of the first processes' medians: the change is that of both sides' values.
static double level_of(const MetricFigures& figures, std::size_t processes) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < processes; ++i) medians.push_back(figures.runs[i].median);
  return *stats::geometric_mean(medians);
}

rules::PairedVerdict PairedMetrics::judge(const Series& series,
                                          std::size_t planned,
                                          bool ended) const {
  rules::PairedVerdict found;
  found.decided = ended;
  const auto watched_a = why_only_watched(series.a), watched_b = why_only_watched(series.b);
  if (!mixed_.empty() || series.log_ratios.empty()) {
    found.verdict = Verdict::invalid;
    found.reason = mixed_.empty() ? series.problem : mixed_;
  } else if (watched_a || watched_b) {
    found.verdict = Verdict::watch;
    found.reason = watched_a ? *watched_a : *watched_b;
  } else {
    const rules::PairedRule rule(
        planned, sign_of_worse(series.a), least_change(series.a, rules::kPairedShare));
    found = rule.judge(series.log_ratios, ended);
    if (found.verdict == Verdict::invalid && !series.problem.empty())
      found.reason += ": " + series.problem;
  }
  return found;
}

bool PairedMetrics::decided(std::size_t planned) const {
  if (pairs_ >= planned) return true;
  return pairs_ >= rules::kLeastPairs && std::ranges::all_of(series_, [&](const auto& entry) {
           const rules::PairedVerdict found = judge(entry.second, planned, false);
           return found.decided || found.verdict == Verdict::watch;
         });
}

Result PairedMetrics::result(const SeriesKey& key,
                             const Series& series,
                             std::size_t planned) const {
  const rules::PairedVerdict found = judge(series, planned, true);
  Result result;
  result.key = key;
  result.node = node_;
  if (const auto name = device_names_.find(key.where.device); name != device_names_.end())
    result.device_name = name->second;
  result.verdict = found.verdict;
  result.reason = found.reason;
  result.runs = result.compared_with = series.log_ratios.size();
  if (series.log_ratios.empty()) return result;
  result.value = series.b.value();
  result.baseline = series.a.value();
  result.p99 = stats::median(series.p99_b);
  result.baseline_p99 = stats::median(series.p99_a);
  result.changed = told_once(differences(series.a.fingerprint, series.b.fingerprint));
  EarlierAlgorithms of_a;
  of_a.add(series.a.algorithms);
  result.algorithm = of_a.change_to(series.b.algorithms);
  if (found.verdict == Verdict::watch) {
    if (*result.baseline != 0) result.change = *result.value / *result.baseline - 1;
    return result;
  }
  if (found.pairs > 0) {
    result.runs = result.compared_with = found.pairs;
    result.change = std::expm1(found.mean);
    result.value = level_of(series.b, found.pairs);
    result.baseline = level_of(series.a, found.pairs);
    result.interval = {std::expm1(found.interval.low), std::expm1(found.interval.high)};
  }
  if (found.verdict == Verdict::invalid) return result;
  result.minimum = least_change(series.a, rules::kPairedShare);
  const rules::SpreadVerdict spread = rules::judge_spread(series.spread_a, series.spread_b);
  result.steadiness = spread.steadiness;
  result.steadiness_reason = spread.reason;
  return result;
}

std::vector<Result> PairedMetrics::results(std::size_t planned) const {
  std::set<CaseKey> with_metric;
  for (const auto& [key, series] : series_) {
    if (!key.metric.empty()) with_metric.insert(key.where);
  }
  std::vector<Result> results;
  for (const auto& [key, series] : series_) {
    // What failed in some pairs and not in others has its metrics.
    if (key.metric.empty() && with_metric.contains(key.where)) continue;
    results.push_back(result(key, series, planned));
  }
  return results;
}

}  // namespace launchgap::regression
