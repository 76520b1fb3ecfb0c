// Statistics per device, case, arm and metric.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/metric.h"
#include "harness/stats/stats.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// One row of summary.csv.
struct SummaryRow {
  const SessionData* session = nullptr;
  CaseKey key;
  std::string metric;  // empty for a case without a result
  Status status = Status::ok;
  std::string reason;
  std::string method;
  std::size_t runs = 0;
  std::size_t n = 0;
  std::optional<double> min, q1, p50, q3, p90, p99, p999, max, mean, sd, mad;
  std::optional<double> p50_ci_lo, p50_ci_hi;
  std::optional<stats::Estimate> within_run_cv, between_run_cv, icc;
  std::optional<double> run_median_range;  // (largest - smallest) / median of the run medians
  std::optional<double> lag1, outlier_share;
  std::optional<int> modes;
  std::optional<std::uint64_t> impossible_records;  // of the trace, over all runs
  bool impossible = false;  // the case's rate cannot be, so the row counts nowhere (case_rates.h)
  std::vector<double> run_medians;  // by replicate, not a column
};

std::vector<SummaryRow> summarise(const SessionData& session);

/// A standard deviation of logarithms as a coefficient of variation.
std::optional<stats::Estimate> as_cv(const std::optional<stats::Estimate>& log_sd);

/// Of each run's own samples, what most runs have; of equally many, the fewer. Pooled, runs that
/// differ would look like modes.
std::optional<int> modes_within_runs(const std::map<int, std::vector<double>>& by_replicate);

/// Takes the rows out that are impossible: whoever chooses among the others need not know of them.
std::vector<SummaryRow> take_impossible(std::vector<SummaryRow>& rows);

/// The rows of each device, in their order: for what goes device by device, and is not to look at
/// all rows for each.
class RowsByDevice {
 public:
  explicit RowsByDevice(const std::vector<SummaryRow>& rows);
  const std::vector<const SummaryRow*>& of(const std::string& device) const;

 private:
  std::map<std::string, std::vector<const SummaryRow*>> rows_;
};

}  // namespace launchgap
