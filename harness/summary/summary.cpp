#include "harness/summary/summary.h"

#include <algorithm>
#include <future>
#include <iterator>

#include <fmt/format.h>

#include "harness/core/csv_writer.h"
#include "harness/core/plan.h"
#include "harness/stats/modes.h"
#include "harness/stats/random_effects.h"
#include "harness/summary/case_rates.h"

namespace launchgap {
namespace {

/// The status of a case over its runs: the gravest, with how many runs it befell.
void judge(const CaseData& data, SummaryRow& row) {
  constexpr Status kGravity[] = {
      Status::failed, Status::invalid, Status::skipped, Status::unsupported};
  for (const Status status : kGravity) {
    const auto befell = [&](const auto& entry) { return entry.second.status == status; };
    const auto count = std::ranges::count_if(data.outcomes, befell);
    if (count == 0) continue;
    row.status = status;
    row.reason = std::ranges::find_if(data.outcomes, befell)->second.reason;
    const auto runs = static_cast<std::ptrdiff_t>(data.outcomes.size());
    if (count < runs) row.reason = fmt::format("in {} of {} runs: {}", count, runs, row.reason);
    return;
  }
  const auto cut_short =
      std::ranges::count_if(data.outcomes, [](const auto& entry) { return !entry.second.status; });
  if (cut_short > 0)
    row.reason = fmt::format("cut short in {} of {} runs", cut_short, data.outcomes.size());
}

/// All values of ascending lists in ascending order, which is much cheaper than to sort them again.
std::vector<double> merged(const std::vector<std::vector<double>>& lists) {
  std::vector<double> all;
  std::vector<std::ptrdiff_t> bounds = {0};
  for (const std::vector<double>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
    bounds.push_back(static_cast<std::ptrdiff_t>(all.size()));
  }
  while (bounds.size() > 2) {
    std::vector<std::ptrdiff_t> fewer = {0};
    for (std::size_t i = 2; i < bounds.size(); i += 2) {
      std::inplace_merge(
          all.begin() + bounds[i - 2], all.begin() + bounds[i - 1], all.begin() + bounds[i]);
      fewer.push_back(bounds[i]);
    }
    if (fewer.back() != bounds.back()) fewer.push_back(bounds.back());
    bounds = std::move(fewer);
  }
  return all;
}

void describe(const std::map<int, std::vector<double>>& by_replicate, SummaryRow& row) {
  std::vector<std::vector<double>> runs;
  std::vector<double> medians;
  double lag1 = 0, lag1_weight = 0;
  for (const auto& [replicate, samples] : by_replicate) {
    if (samples.empty()) continue;
    if (const auto correlation = stats::lag1_autocorrelation(samples)) {
      lag1 += *correlation * static_cast<double>(samples.size());
      lag1_weight += static_cast<double>(samples.size());
    }
    std::vector<double>& sorted = runs.emplace_back(samples);
    std::ranges::sort(sorted);
    medians.push_back(*stats::quantile(sorted, 0.5));
  }
  const std::vector<double> all = merged(runs);
  row.runs = runs.size();
  row.n = all.size();
  row.min = stats::quantile(all, 0);
  row.q1 = stats::quantile(all, 0.25);
  row.p50 = stats::quantile(all, 0.5);
  row.q3 = stats::quantile(all, 0.75);
  row.p90 = stats::quantile(all, 0.9);
  row.p99 = stats::quantile(all, 0.99);
  row.p999 = stats::quantile(all, 0.999);
  row.max = stats::quantile(all, 1);
  row.mean = stats::mean(all);
  row.sd = stats::standard_deviation(all);
  row.mad = stats::median_absolute_deviation(all);
  row.outlier_share = stats::outlier_share(all);
  if (lag1_weight > 0) row.lag1 = lag1 / lag1_weight;
  row.modes = modes_within_runs(by_replicate);
  const stats::RandomEffects effects = stats::random_effects(runs);
  row.within_run_cv = as_cv(effects.within_sd);
  row.between_run_cv = as_cv(effects.between_sd);
  row.icc = effects.icc;
  row.run_medians = medians;
  std::ranges::sort(medians);
  if (medians.size() > 1 && *stats::quantile(medians, 0.5) > 0)
    row.run_median_range = (medians.back() - medians.front()) / *stats::quantile(medians, 0.5);
  if (const auto interval = stats::median_interval(medians)) {
    row.p50_ci_lo = interval->low;
    row.p50_ci_hi = interval->high;
  }
}

/// A row per metric. Of millions of samples two at once: to sort them is most of an import.
std::vector<SummaryRow> describe_metrics(const CaseData& data, const SummaryRow& base) {
  constexpr std::size_t kMany = 200'000;
  std::vector<SummaryRow> rows;
  for (const std::string& metric : data.metric_order) {
    rows.push_back(base);
    rows.back().metric = metric;
  }
  const auto describe_row = [&](std::size_t i) {
    describe(data.samples.at(rows[i].metric), rows[i]);
  };
  std::size_t largest = 0;
  for (const auto& [metric, by_replicate] : data.samples) {
    for (const auto& [replicate, samples] : by_replicate)
      largest = std::max(largest, samples.size());
  }
  const std::launch how = largest > kMany ? std::launch::async : std::launch::deferred;
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    std::future<void> other;
    if (i + 1 < rows.size()) other = std::async(how, describe_row, i + 1);
    describe_row(i);
    if (other.valid()) other.get();
  }
  return rows;
}

}  // namespace

std::optional<stats::Estimate> as_cv(const std::optional<stats::Estimate>& log_sd) {
  if (!log_sd) return std::nullopt;
  return stats::Estimate{
      stats::lognormal_cv(log_sd->value),
      {stats::lognormal_cv(log_sd->interval.low), stats::lognormal_cv(log_sd->interval.high)}};
}

std::optional<int> modes_within_runs(const std::map<int, std::vector<double>>& by_replicate) {
  std::map<int, int> runs_by_modes;
  for (const auto& [replicate, samples] : by_replicate) {
    if (const auto modes = stats::modes(samples)) ++runs_by_modes[*modes];
  }
  const auto most =
      std::ranges::max_element(runs_by_modes, {}, [](const auto& entry) { return entry.second; });
  if (most == runs_by_modes.end()) return std::nullopt;
  return most->first;
}

std::vector<SummaryRow> summarise(const SessionData& session) {
  std::vector<SummaryRow> rows;
  std::map<CaseKey, std::uint64_t> impossible;
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    if (!record.impossible || record.of_run()) continue;
    impossible[{trace.device,
                std::string(name_of(Arm::traced)),
                trace.process_config,
                CaseName::parse(*record.case_name)}] +=
        static_cast<std::uint64_t>(*record.impossible);
  }
  const std::map<CaseKey, std::string> cannot_be = impossible_cases(session);
  // A row is large, and there may be a million: a vector that grows would hold twice as many.
  std::size_t most = 0;
  for (const auto& [key, data] : session.cases)
    most += std::max<std::size_t>(1, data.samples.size());
  rows.reserve(most);
  for (const auto& [key, data] : session.cases) {
    SummaryRow base;
    base.session = &session;
    base.key = key;
    base.impossible = cannot_be.contains(key);
    base.method = data.method;
    judge(data, base);
    if (const auto found = impossible.find(key); found != impossible.end())
      base.impossible_records = found->second;
    std::vector<SummaryRow> of_case = describe_metrics(data, base);
    std::erase_if(of_case, [](const SummaryRow& row) { return row.n == 0; });
    if (of_case.empty()) of_case.push_back(std::move(base));
    std::ranges::move(of_case, std::back_inserter(rows));
  }
  return rows;
}

std::vector<SummaryRow> take_impossible(std::vector<SummaryRow>& rows) {
  const auto first = std::stable_partition(
      rows.begin(), rows.end(), [](const SummaryRow& row) { return !row.impossible; });
  std::vector<SummaryRow> taken(std::make_move_iterator(first),
                                std::make_move_iterator(rows.end()));
  rows.erase(first, rows.end());
  return taken;
}

RowsByDevice::RowsByDevice(const std::vector<SummaryRow>& rows) {
  for (const SummaryRow& row : rows) rows_[row.key.device].push_back(&row);
}

const std::vector<const SummaryRow*>& RowsByDevice::of(const std::string& device) const {
  static const std::vector<const SummaryRow*> kNone;
  const auto found = rows_.find(device);
  return found == rows_.end() ? kNone : found->second;
}

}  // namespace launchgap
