#include "harness/summary/run_factors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/stats/stats.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr double kLeastCv = 0.01;

/// One run of a case: what it came to, and where it is from.
struct Observed {
  const RunInfo* run = nullptr;
  const DeviceFacts* device = nullptr;
  double log_median = 0;
  std::map<std::string, double> telemetry;  // means over the case's blocks
};

std::string libraries_of(const RunInfo& run) {
  std::string text;
  for (const LoadedLibrary& library : run.libraries)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", library.name, library.version);
  return text;
}

struct Factor {
  std::string_view name;
  std::function<rules::FactorValue(const Observed&)> value;  // neither text nor number: not told
};

rules::FactorValue of_telemetry(const Observed& observed, const char* quantity) {
  const auto found = observed.telemetry.find(quantity);
  if (found == observed.telemetry.end()) return {};
  return {fmt::format("{:.4g}", found->second), found->second};
}

const std::vector<Factor>& all_factors() {
  static const std::vector<Factor> factors = {
      {"device", [](const Observed& o) { return rules::FactorValue{o.run->device}; }},
      {"numa_node",
       [](const Observed& o) {
         return rules::FactorValue{
             o.device && o.device->numa_node ? std::to_string(*o.device->numa_node) : ""};
       }},
      {"cpus", [](const Observed& o) { return rules::FactorValue{o.run->cpus}; }},
      {"kernel_form", [](const Observed& o) { return rules::FactorValue{o.run->kernel_form}; }},
      {"jit",
       [](const Observed& o) {
         return rules::FactorValue{o.run->jit ? (*o.run->jit ? "true" : "false") : ""};
       }},
      {"libraries", [](const Observed& o) { return rules::FactorValue{libraries_of(*o.run)}; }},
      {"other_processes",
       [](const Observed& o) {
         return rules::FactorValue{o.run->other_processes ? std::to_string(*o.run->other_processes)
                                                          : ""};
       }},
      {"begin",
       [](const Observed& o) {
         if (!o.run->begin_ns) return rules::FactorValue();
         return rules::FactorValue{o.run->begin_utc, static_cast<double>(*o.run->begin_ns)};
       }},
      {"sm_clock_mhz", [](const Observed& o) { return of_telemetry(o, "sm_clock_mhz"); }},
      {"temperature_c", [](const Observed& o) { return of_telemetry(o, "temperature_c"); }},
      {"power_w", [](const Observed& o) { return of_telemetry(o, "power_w"); }},
      {"cpu_mhz", [](const Observed& o) { return of_telemetry(o, "cpu_mhz"); }},
  };
  return factors;
}

using Readings = std::map<CaseRun, std::vector<const TelemetryInfo*>>;

/// What telemetry said during a case in a run, on average.
std::map<std::string, double> means_of(const Readings& readings, const CaseRun& run) {
  std::map<std::string, double> means;
  const auto own = readings.find(run);
  if (own == readings.end()) return means;
  std::map<std::string, double> counts;
  for (const TelemetryInfo* const reading : own->second) {
    for (const auto& [quantity, value] : reading->values) {
      means[quantity] += value;
      ++counts[quantity];
    }
  }
  for (auto& [quantity, mean] : means) mean /= counts.at(quantity);
  return means;
}

void observe(const SessionData& session,
             const Readings& readings,
             const SummaryRow& row,
             std::vector<Observed>& observed) {
  const auto data = session.cases.find(row.key);
  if (data == session.cases.end()) return;
  const auto samples = data->second.samples.find(row.metric);
  if (samples == data->second.samples.end()) return;
  for (const auto& [replicate, values] : samples->second) {
    const CaseRun case_run = row.key.in_run(replicate);
    const auto run = std::ranges::find(session.runs, case_run.run, &RunInfo::id);
    const auto median = stats::median(values);
    if (run == session.runs.end() || !median || !(*median > 0)) continue;
    observed.push_back(
        {&*run, session.device(row.key.device), std::log(*median), means_of(readings, case_run)});
  }
}

void add_factors(const SummaryRow& row,
                 const std::vector<Observed>& observed,
                 std::vector<RunFactor>& found) {
  std::vector<double> logs;
  for (const Observed& one : observed) logs.push_back(one.log_median);
  const auto cv = stats::standard_deviation(logs);
  if (logs.size() < rules::kFewestRunsForFactors || !cv || *cv < kLeastCv) return;
  const auto [fast, slow] = std::ranges::minmax_element(logs);
  const std::size_t first = found.size();
  for (const Factor& factor : all_factors()) {
    std::vector<rules::FactorValue> values;
    for (const Observed& one : observed) values.push_back(factor.value(one));
    const auto own = rules::explained(logs, values);
    if (!own) continue;
    RunFactor& added = found.emplace_back();
    added.row = &row;
    added.factor = factor.name;
    added.runs = logs.size();
    added.found = *own;
    added.slow = values[static_cast<std::size_t>(slow - logs.begin())].text;
    added.fast = values[static_cast<std::size_t>(fast - logs.begin())].text;
  }
  for (std::size_t i = first; i < found.size(); ++i) found[i].tried = found.size() - first;
  std::ranges::stable_sort(found.begin() + static_cast<std::ptrdiff_t>(first),
                           found.end(),
                           {},
                           [](const RunFactor& factor) { return factor.found.chance; });
}

}  // namespace

std::vector<RunFactor> run_factors(const SessionData& session,
                                   const std::vector<SummaryRow>& rows) {
  const Readings readings = telemetry_by_case(session);
  // Devices of one name are asked together.
  std::map<std::tuple<std::string, ProcessConfig, std::string, std::string>,
           std::vector<const SummaryRow*>>
      of_kind;
  for (const SummaryRow& row : rows) {
    const Metric* const known = find_metric(row.metric);
    if (row.key.arm != name_of(Arm::plain) || !known || known->unit == "1" ||
        !known->function_of.empty()) {
      continue;
    }
    const DeviceFacts* const device = session.device(row.key.device);
    of_kind[{device ? device->name : row.key.device,
             row.key.process_config,
             row.key.name.text(),
             row.metric}]
        .push_back(&row);
  }
  std::vector<RunFactor> found;
  for (const auto& [kind, own] : of_kind) {
    std::vector<Observed> observed;
    for (const SummaryRow* const row : own) observe(session, readings, *row, observed);
    add_factors(*own.front(), observed, found);
  }
  return found;
}

Table run_factors_table() {
  using Row = const RunFactor&;
  return make_table<RunFactor>(
      "run_factors.csv",
      "case, metric, and what differs between its runs",
      TableUse::details,
      [](const TableInputs& from) { return run_factors(from.session, from.rows); },
      {{"device_id",
        "The device's UUID; the first of those of its name, whose runs are taken together.",
        [](Row row) { return row.row->key.device; }},
       {"process_config", [](Row row) { return row.row->key.process_config.text(); }},
       {"case", [](Row row) { return row.row->key.name.text(); }},
       {"metric", [](Row row) { return row.row->metric; }},
       {"factor",
        "What differs: a fact of the device or run, a quantity of telemetry (its mean), or when "
        "the run began.",
        &RunFactor::factor},
       {"runs", "That are compared: six or more.", &RunFactor::runs},
       {"variance_share",
        "Of the variance of the logarithms of the runs' medians, what it explains: by groups of "
        "equal values, or by the correlation with a number.",
        [](Row row) { return row.found.variance_share; },
        kShare},
       {"chance",
        "That a factor without effect explains as much (F test, or Student's t).",
        [](Row row) { return row.found.chance; },
        "1"},
       {"verdict",
        "explains: half of the variance or more, and chance times the factors that vary is 1 % at "
        "most; in-part: the latter alone; may-be-chance: neither.",
        [](Row row) { return name_of(row.verdict()); }},
       {"slow", "Its value in the slowest run.", &RunFactor::slow},
       {"fast", "Its value in the fastest run.", &RunFactor::fast}});
}

}  // namespace launchgap
