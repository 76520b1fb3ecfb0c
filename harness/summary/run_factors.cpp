#include "harness/summary/run_factors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

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

/// Means of what telemetry said during a case, by run.
class Telemetries {
 public:
  explicit Telemetries(const SessionData& session) {
    for (const TelemetryInfo& info : session.telemetry) {
      auto& own =
          sums_[{info.device, info.arm, info.process_config, info.case_name, info.replicate}];
      for (const auto& [quantity, value] : info.values) {
        own[quantity].first += value;
        ++own[quantity].second;
      }
    }
  }
  std::map<std::string, double> of(const CaseKey& key, int replicate) const {
    std::map<std::string, double> means;
    const auto own =
        sums_.find({key.device, key.arm, key.process_config, key.name.text(), replicate});
    if (own == sums_.end()) return means;
    for (const auto& [quantity, sum] : own->second)
      means[quantity] = sum.first / static_cast<double>(sum.second);
    return means;
  }

 private:
  using Key = std::tuple<std::string, std::string, ProcessConfig, std::string, int>;
  std::map<Key, std::map<std::string, std::pair<double, std::size_t>>> sums_;
};

const RunInfo* run_of(const SessionData& session, const CaseKey& key, int replicate) {
  const auto found = std::ranges::find_if(session.runs, [&](const RunInfo& run) {
    return run.device == key.device && run.arm == key.arm && run.replicate == replicate &&
           run.process_config == key.process_config;
  });
  return found == session.runs.end() ? nullptr : &*found;
}

void observe(const SessionData& session,
             const Telemetries& telemetries,
             const SummaryRow& row,
             std::vector<Observed>& observed) {
  const auto data = session.cases.find(row.key);
  if (data == session.cases.end()) return;
  const auto samples = data->second.samples.find(row.metric);
  if (samples == data->second.samples.end()) return;
  for (const auto& [replicate, values] : samples->second) {
    const RunInfo* const run = run_of(session, row.key, replicate);
    const auto median = stats::median(values);
    if (!run || !median || !(*median > 0)) continue;
    observed.push_back({run,
                        session.device(row.key.device),
                        std::log(*median),
                        telemetries.of(row.key, replicate)});
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
  const Telemetries telemetries(session);
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
    for (const SummaryRow* const row : own) observe(session, telemetries, *row, observed);
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
