#include "harness/summary/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/stats/modes.h"
#include "harness/stats/random_effects.h"
#include "harness/stats/stats.h"
#include "harness/summary/csv.h"

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

std::optional<stats::Estimate> as_cv(const std::optional<stats::Estimate>& log_sd) {
  if (!log_sd) return std::nullopt;
  return stats::Estimate{
      stats::lognormal_cv(log_sd->value),
      {stats::lognormal_cv(log_sd->interval.low), stats::lognormal_cv(log_sd->interval.high)}};
}

/// Of each run's own samples, what most runs have; of equally many, the fewer. Pooled, runs that
/// differ would look like modes.
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

std::string of_device(const SummaryRow& row, std::string DeviceFacts::*field) {
  const DeviceFacts* device = row.session->device(row.key.device);
  return device ? device->*field : "";
}

bool simulated(const SummaryRow& row) {
  const DeviceFacts* device = row.session->device(row.key.device);
  return (device && device->simulated) ||
         std::ranges::any_of(row.session->runs, [&](const RunInfo& run) {
           return run.device == row.key.device && run.simulated;
         });
}

std::string or_empty(const std::optional<std::string>& text) {
  return text.value_or("");
}

template <class Number>
std::string number_or_empty(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : "";
}

SummaryColumn statistic(std::string_view key,
                        std::string_view description,
                        std::optional<double> SummaryRow::*field) {
  return {key, description, [field](const SummaryRow& row) { return cell(row.*field); }};
}

/// An estimate's value, or one end of its interval.
SummaryColumn estimate(std::string_view key,
                       std::string_view description,
                       std::optional<stats::Estimate> SummaryRow::*field,
                       double (*part)(const stats::Estimate&)) {
  return {key, description, [field, part](const SummaryRow& row) {
            return row.*field ? cell(part(*(row.*field))) : std::string();
          }};
}

double value_of(const stats::Estimate& estimate) {
  return estimate.value;
}
double low_of(const stats::Estimate& estimate) {
  return estimate.interval.low;
}
double high_of(const stats::Estimate& estimate) {
  return estimate.interval.high;
}

/// "cuBLAS 13.1.0 (/path); cuDNN 9.19.0 (/path)".
std::string libraries_text(const SessionData& session, const std::string& device) {
  std::vector<std::string> texts;
  for (const RunInfo& run : session.runs) {
    if (run.device != device) continue;
    for (const Json& library : run.libraries) {
      std::string text = fmt::format("{} {} ({})",
                                     maybe<std::string>(library, "name").value_or(""),
                                     maybe<std::string>(library, "version").value_or(""),
                                     maybe<std::string>(library, "path").value_or(""));
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

const Metric* known_metric(const std::string& key) {
  const auto metrics = all_metrics();
  const auto found = std::ranges::find(metrics, key, &Metric::key);
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<SummaryRow> summarise(const SessionData& session) {
  std::vector<SummaryRow> rows;
  std::map<CaseKey, std::uint64_t> impossible;
  for (const TraceInfo& trace : session.traces) {
    const auto count = maybe<std::uint64_t>(trace.record, "impossible");
    if (!count || trace.case_name.empty()) continue;
    impossible[{trace.device,
                std::string(name_of(Arm::traced)),
                trace.setup,
                CaseName::parse(trace.case_name)}] += *count;
  }
  for (const auto& [key, data] : session.cases) {
    SummaryRow base;
    base.session = &session;
    base.key = key;
    base.method = data.method;
    judge(data, base);
    if (const auto found = impossible.find(key); found != impossible.end())
      base.impossible_records = found->second;
    bool any = false;
    for (const std::string& metric : data.metric_order) {
      SummaryRow row = base;
      row.metric = metric;
      describe(data.samples.at(metric), row);
      if (row.n == 0) continue;
      any = true;
      rows.push_back(std::move(row));
    }
    if (!any) rows.push_back(std::move(base));
  }
  return rows;
}

const std::vector<SummaryColumn>& summary_columns() {
  using Row = const SummaryRow&;
  static const std::vector<SummaryColumn> columns = {
      {"session_id", "The session: one `launchgap run`.", [](Row row) { return row.session->id; }},
      {"node", "The machine's name.", [](Row row) { return row.session->node; }},
      {"device_id", "The device's UUID.", [](Row row) { return row.key.device; }},
      {"device_name",
       "The device's name, as it gives it.",
       [](Row row) { return of_device(row, &DeviceFacts::name); }},
      {"backend",
       "cuda: a GPU through the CUDA driver; host: the CPU.",
       [](Row row) { return of_device(row, &DeviceFacts::backend); }},
      {"compute_capability",
       "The GPU's generation, as CUDA numbers it.",
       [](Row row) {
         const DeviceFacts* device = row.session->device(row.key.device);
         return device ? or_empty(device->compute_capability) : "";
       }},
      {"arm",
       "plain: nothing traces the process, these numbers are the headline; traced: its activity is "
       "recorded, by CUPTI or the host device itself.",
       [](Row row) { return row.key.arm; }},
      {"setup",
       "The family of benchmarks and the settings of the whole process.",
       [](Row row) { return row.key.setup; }},
      {"benchmark", "The workload.", [](Row row) { return row.key.name.benchmark; }},
      {"params",
       "The workload's axes and their values.",
       [](Row row) { return row.key.name.params_text(); }},
      {"metric", "What was measured.", [](Row row) { return row.metric; }},
      {"unit",
       "Unit of all statistics from min to mad.",
       [](Row row) {
         const Metric* m = known_metric(row.metric);
         return std::string(m ? m->unit : "");
       }},
      {"direction",
       "Which way is better.",
       [](Row row) {
         const Metric* m = known_metric(row.metric);
         return std::string(m ? name_of(m->direction) : "");
       }},
      {"status",
       "ok, failed, skipped, invalid (measured, and not to be trusted) or unsupported.",
       [](Row row) { return std::string(name_of(row.status)); }},
      {"reason",
       "Why the status is not ok, or what was cut short.",
       [](Row row) { return row.reason; }},
      {"runs",
       "Fresh processes that measured it.",
       [](Row row) { return std::to_string(row.runs); }},
      {"n", "Samples, over all runs.", [](Row row) { return std::to_string(row.n); }},
      statistic("min", "Smallest sample.", &SummaryRow::min),
      statistic("q1", "First quartile.", &SummaryRow::q1),
      statistic("p50", "Median of all samples of all runs.", &SummaryRow::p50),
      statistic("q3", "Third quartile.", &SummaryRow::q3),
      statistic("p90", "One sample in ten is above.", &SummaryRow::p90),
      statistic("p99", "One sample in a hundred is above.", &SummaryRow::p99),
      statistic("p999", "One sample in a thousand is above.", &SummaryRow::p999),
      statistic("max", "Largest sample.", &SummaryRow::max),
      statistic("mean", "Arithmetic mean.", &SummaryRow::mean),
      statistic("sd", "Standard deviation of all samples.", &SummaryRow::sd),
      statistic("mad",
                "Median absolute deviation from the median: spread that outliers do not move.",
                &SummaryRow::mad),
      statistic("p50_ci_lo",
                "Lower end of the 95 % interval of the median over runs (six runs or more).",
                &SummaryRow::p50_ci_lo),
      statistic("p50_ci_hi",
                "Upper end of the 95 % interval of the median over runs (six runs or more).",
                &SummaryRow::p50_ci_hi),
      estimate(
          "within_run_cv",
          "Coefficient of variation within runs, from the standard deviation of the logarithms.",
          &SummaryRow::within_run_cv,
          value_of),
      estimate("between_run_cv",
               "Coefficient of variation between runs, beyond what their samples explain.",
               &SummaryRow::between_run_cv,
               value_of),
      estimate("icc",
               "Share of the variance of the logarithms that lies between runs: 0, any process is "
               "like another; 1, all that differs is the process.",
               &SummaryRow::icc,
               value_of),
      statistic(
          "lag1", "Correlation of each sample with the next, within runs.", &SummaryRow::lag1),
      {"modes",
       "Modes of the distribution within a run, by the dip test; of the runs, what most have.",
       [](Row row) { return row.modes ? std::to_string(*row.modes) : std::string(); }},
      statistic("outlier_share",
                "Share of samples beyond 1.5 interquartile ranges from the quartiles.",
                &SummaryRow::outlier_share),
      {"source",
       "What measured it: the host's clock, events on the device, the trace, or derived from "
       "another "
       "metric.",
       [](Row row) {
         const Metric* m = known_metric(row.metric);
         return std::string(m ? m->source : "");
       }},
      {"simulated",
       "Whether it ran on the fake CUDA libraries of the tests.",
       [](Row row) { return cell(simulated(row)); }},
      {"method",
       "What did the work: library, call, algorithm.",
       [](Row row) { return row.method; }},
      estimate("within_run_cv_lo",
               "Lower end of the 95 % interval of within_run_cv.",
               &SummaryRow::within_run_cv,
               low_of),
      estimate("within_run_cv_hi",
               "Upper end of the 95 % interval of within_run_cv.",
               &SummaryRow::within_run_cv,
               high_of),
      estimate("between_run_cv_lo",
               "Lower end of the 95 % interval of between_run_cv.",
               &SummaryRow::between_run_cv,
               low_of),
      estimate("between_run_cv_hi",
               "Upper end of the 95 % interval of between_run_cv.",
               &SummaryRow::between_run_cv,
               high_of),
      estimate("icc_lo", "Lower end of the 95 % interval of icc.", &SummaryRow::icc, low_of),
      estimate("icc_hi", "Upper end of the 95 % interval of icc.", &SummaryRow::icc, high_of),
      statistic("run_median_range",
                "Largest less smallest median of a run, as a share of the median of the medians.",
                &SummaryRow::run_median_range),
      {"impossible_records",
       "Records of the trace that cannot be or are missing, over all runs; their samples lack the "
       "traced metrics.",
       [](Row row) { return number_or_empty(row.impossible_records); }},
  };
  return columns;
}

void write_csv_tables(const SessionData& session,
                      const std::vector<SummaryRow>& rows,
                      const std::filesystem::path& folder) {
  std::vector<std::string> header;
  for (const SummaryColumn& column : summary_columns()) header.emplace_back(column.key);
  CsvWriter summary(folder / "summary.csv", header);
  for (const SummaryRow& row : rows) {
    std::vector<std::string> cells;
    for (const SummaryColumn& column : summary_columns()) cells.push_back(column.cell(row));
    summary.row(cells);
  }
  summary.commit();

  const Json host = session.meta.value("host", Json::object());
  CsvWriter devices(folder / "devices.csv",
                    {"session_id",
                     "node",
                     "device_id",
                     "device_index",
                     "device_name",
                     "backend",
                     "compute_capability",
                     "uuid",
                     "pci_bus_id",
                     "memory_bytes",
                     "multiprocessors",
                     "clock_mhz",
                     "memory_clock_mhz",
                     "memory_bus_bits",
                     "l2_bytes",
                     "driver_version",
                     "libraries",
                     "host_cpu",
                     "usable",
                     "reason",
                     "simulated"});
  for (const DeviceFacts& device : session.devices) {
    devices.row({session.id,
                 session.node,
                 device.uuid,
                 std::to_string(device.index),
                 device.name,
                 device.backend,
                 or_empty(device.compute_capability),
                 device.uuid,
                 or_empty(device.pci_bus_id),
                 number_or_empty(device.memory_bytes),
                 number_or_empty(device.multiprocessors),
                 number_or_empty(device.clock_mhz),
                 number_or_empty(device.memory_clock_mhz),
                 number_or_empty(device.memory_bus_bits),
                 number_or_empty(device.last_level_cache_bytes),
                 or_empty(device.driver_version),
                 libraries_text(session, device.uuid),
                 maybe<std::string>(host, "cpu_model").value_or(""),
                 cell(device.usable),
                 device.reason,
                 cell(device.simulated)});
  }
  devices.commit();

  CsvWriter runs(folder / "runs.csv",
                 {"session_id",
                  "node",
                  "device_id",
                  "device_name",
                  "replicate",
                  "arm",
                  "setup",
                  "attempt",
                  "status",
                  "reason",
                  "begin_utc",
                  "duration_s",
                  "pid",
                  "cpus",
                  "side_by_side",
                  "cases_ok",
                  "cases_failed",
                  "kernel_form",
                  "jit",
                  "records_file",
                  "simulated",
                  "begin_ns",
                  "fingerprint",
                  "trace_state",
                  "measured_under_tool",
                  "other_processes",
                  "steady"});
  for (const RunInfo& run : session.runs) {
    const DeviceFacts* device = session.device(run.device);
    runs.row({session.id,
              run.node,
              run.device,
              device ? device->name : "",
              std::to_string(run.replicate),
              run.arm,
              run.setup,
              std::to_string(run.attempt),
              run.status,
              run.reason,
              run.begin_utc,
              cell(run.duration_s),
              number_or_empty(run.pid),
              run.cpus,
              number_or_empty(run.side_by_side),
              std::to_string(run.cases_ok),
              std::to_string(run.cases_failed),
              run.kernel_form,
              run.jit ? cell(*run.jit) : "",
              run.file,
              cell(run.simulated),
              number_or_empty(run.begin_ns),
              run.fingerprint.dump(-1, ' ', false, Json::error_handler_t::replace),
              run.trace_state,
              run.measured_under_tool,
              number_or_empty(run.other_processes),
              run.steady ? cell(*run.steady) : ""});
  }
  runs.commit();
}

}  // namespace launchgap
