#include "harness/summary/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "harness/rules/outliers.h"
#include "harness/stats/random_effects.h"

namespace launchgap {
namespace {

constexpr std::string_view kPlain = "plain";
constexpr std::string_view kTraced = "traced";

const CaseData* find_case(const SessionData& session,
                          const std::string& device,
                          std::string_view arm,
                          std::string_view benchmark) {
  for (const auto& [key, data] : session.cases) {
    if (key.device == device && key.arm == arm && key.process_config.usual() &&
        key.name.benchmark == benchmark) {
      return &data;
    }
  }
  return nullptr;
}

/// Rows of one metric of one case, on the devices of one name.
using KindKey = std::tuple<std::string, std::string, ProcessConfig, CaseName, std::string>;

std::map<KindKey, std::vector<const SummaryRow*>> rows_by_kind(
    const SessionData& session,
    const std::vector<SummaryRow>& rows) {
  std::map<KindKey, std::vector<const SummaryRow*>> kinds;
  for (const SummaryRow& row : rows) {
    const DeviceFacts* device = session.device(row.key.device);
    if (!device || row.metric.empty() || row.run_medians.empty()) continue;
    if (row.key.process_config.is_observer()) continue;
    kinds[{device->name, row.key.arm, row.key.process_config, row.key.name, row.metric}].push_back(
        &row);
  }
  std::erase_if(kinds, [](const auto& entry) { return entry.second.size() < 2; });
  return kinds;
}

std::vector<std::vector<double>> run_medians(const std::vector<const SummaryRow*>& rows) {
  std::vector<std::vector<double>> medians;
  for (const SummaryRow* row : rows) medians.push_back(row->run_medians);
  return medians;
}

std::vector<std::vector<double>> samples_of_devices(const SessionData& session,
                                                    const std::vector<const SummaryRow*>& rows) {
  std::vector<std::vector<double>> samples;
  for (const SummaryRow* row : rows)
    samples.push_back(session.cases.at(row->key).of_all_runs(row->metric));
  return samples;
}

/// Of the launches of recorded runs that have steps.
std::vector<Variation> variations_by_step(const SessionData& session) {
  std::vector<Variation> all;
  for (const JobInfo& job : session.jobs) {
    for (const StepVariation& own : job.record.variation) {
      const CaseKey key = {job.device,
                           std::string(kRecorded),
                           {std::string(kRecorded)},
                           CaseName::parse(own.case_name)};
      const auto add = [&](VariationLevel level, const RecordedCv& cv) {
        all.push_back({job.device,
                       key,
                       own.metric,
                       level,
                       own.steps,
                       {cv.value, {cv.low, cv.high}},
                       job.replicate});
      };
      add(VariationLevel::launches, own.within);
      add(VariationLevel::steps, own.between);
    }
  }
  return all;
}

/// The levels that add up: of a run with steps, its samples' variation is that of launches and
/// steps; a kind has the means of its devices.
void add_shares(const SessionData& session, std::vector<Variation>& all) {
  const auto variance = [](const Variation& own) {
    return std::log1p(own.cv.value * own.cv.value);
  };
  using Key = std::tuple<std::string, CaseName, std::string, std::string>;
  const auto key_of = [](const std::string& scope, const Variation& own) {
    return Key{own.key.arm + "/" + own.key.process_config.text(), own.key.name, own.metric, scope};
  };
  struct Sums {
    double run = 0, steps = 0, devices = 0;
    std::size_t runs_with_steps = 0;
    double total() const {
      const double within =
          runs_with_steps > 0 ? steps / static_cast<double>(runs_with_steps) : run;
      return within + devices;
    }
  };
  std::map<Key, double> of_kind;
  std::map<Key, Sums> of_device;
  for (const Variation& own : all) {
    if (own.level == VariationLevel::devices) {
      of_kind[key_of(own.scope, own)] = variance(own);
      continue;
    }
    Sums& sums = of_device[key_of(own.scope, own)];
    const bool by_step =
        own.level == VariationLevel::launches || own.level == VariationLevel::steps;
    (by_step ? sums.steps : sums.run) += variance(own);
    if (own.level == VariationLevel::steps) ++sums.runs_with_steps;
  }
  std::map<Key, std::pair<double, std::size_t>> totals_of_kind;
  for (Variation& own : all) {
    if (own.level == VariationLevel::devices) continue;
    const DeviceFacts* const device = session.device(own.scope);
    const auto kind = of_kind.find(key_of(device ? device->name : "", own));
    Sums& sums = of_device.at(key_of(own.scope, own));
    if (kind != of_kind.end()) sums.devices = kind->second;
    const double total = sums.total();
    own.share = total > 0 ? std::min(1.0, variance(own) / total) : 0;
    if (kind == of_kind.end()) continue;
    auto& [sum, count] = totals_of_kind[kind->first];
    sum += total;
    ++count;
  }
  for (Variation& own : all) {
    if (own.level != VariationLevel::devices) continue;
    const auto& [sum, count] = totals_of_kind[key_of(own.scope, own)];
    if (sum > 0) own.share = std::min(1.0, variance(own) * static_cast<double>(count) / sum);
  }
}

}  // namespace

std::string_view name_of(VariationLevel level) {
  constexpr std::array<std::string_view, 5> kNames = {
      "launches", "steps", "samples", "runs", "devices"};
  return kNames.at(static_cast<std::size_t>(level));
}

std::vector<Variation> variations(const SessionData& session, const std::vector<SummaryRow>& rows) {
  std::vector<Variation> all = variations_by_step(session);
  for (const SummaryRow& row : rows) {
    const auto add = [&](VariationLevel level, const std::optional<stats::Estimate>& cv) {
      if (cv) all.push_back({row.key.device, row.key, row.metric, level, row.runs, *cv});
    };
    add(VariationLevel::samples, row.within_run_cv);
    add(VariationLevel::runs, row.between_run_cv);
  }
  for (const auto& [kind, of_kind] : rows_by_kind(session, rows)) {
    const auto& [name, arm, process_config, case_name, metric] = kind;
    // A run's median is one observation of its device. A rank of a recorded job has one run only.
    const stats::RandomEffects effects = stats::random_effects(
        arm == kRecorded ? samples_of_devices(session, of_kind) : run_medians(of_kind));
    if (const auto cv = as_cv(effects.between_sd))
      all.push_back({name,
                     {"", arm, process_config, case_name},
                     metric,
                     VariationLevel::devices,
                     of_kind.size(),
                     *cv});
  }
  add_shares(session, all);
  return all;
}

std::vector<OutlierDevice> outlier_devices(const SessionData& session,
                                           const std::vector<SummaryRow>& rows) {
  const auto kinds = rows_by_kind(session, rows);
  // Every metric of every case is another chance to differ by chance.
  std::map<std::string, std::size_t> comparisons;
  for (const auto& [kind, of_kind] : kinds) {
    if (std::get<1>(kind) == kPlain) ++comparisons[std::get<0>(kind)];
  }
  std::vector<OutlierDevice> odd;
  for (const auto& [kind, of_kind] : kinds) {
    if (std::get<1>(kind) != kPlain) continue;
    const auto deviations =
        rules::deviations(run_medians(of_kind), comparisons.at(std::get<0>(kind)));
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      const rules::Deviation& deviation = deviations[i];
      if (!deviation.deviates) continue;
      odd.push_back({of_kind[i]->key.device,
                     of_kind[i]->key,
                     of_kind[i]->metric,
                     *deviation.ratio,
                     *deviation.interval});
    }
  }
  return odd;
}

std::vector<ObserverEffect> observer_effects(const std::vector<SummaryRow>& rows) {
  std::vector<ObserverEffect> effects;
  // Older records have no twins of the plain processes: there it is the whole family that is
  // compared.
  const bool twins = std::ranges::any_of(rows, [](const SummaryRow& row) {
    return row.key.arm == kPlain && row.key.process_config.is_observer();
  });
  const auto traced_row = [&](const SummaryRow& plain, TraceLevel level) -> const SummaryRow* {
    const ProcessConfig family = plain.key.process_config.family();
    const ProcessConfig process_config =
        twins || level != TraceLevel::all ? family.with_observer(level) : family;
    for (const SummaryRow& row : rows) {
      if (row.key.device == plain.key.device && row.key.arm == kTraced &&
          row.key.process_config == process_config && row.key.name == plain.key.name &&
          row.metric == plain.metric) {
        return &row;
      }
    }
    return nullptr;
  };
  for (const SummaryRow& plain : rows) {
    if (plain.key.arm != kPlain || plain.run_medians.empty()) continue;
    if (plain.key.process_config.is_observer() != twins) continue;
    if (!twins && !traced_row(plain, TraceLevel::launches)) continue;  // not meant to show it
    for (const TraceLevel level : {TraceLevel::launches, TraceLevel::kernels, TraceLevel::all}) {
      const SummaryRow* traced = traced_row(plain, level);
      if (!traced || traced->run_medians.empty()) continue;
      effects.push_back({plain.key.device,
                         plain.key.name,
                         plain.metric,
                         level,
                         plain.run_medians.size(),
                         traced->run_medians.size(),
                         *stats::mean(plain.run_medians),
                         *stats::mean(traced->run_medians),
                         stats::difference(traced->run_medians, plain.run_medians)});
    }
  }
  return effects;
}

std::vector<LaunchParts> launch_parts(const SessionData& session) {
  struct ShownQuantile {
    const char* name;
    double p;
    double half_width;  // samples between p - half_width and p + half_width are averaged
  };
  constexpr ShownQuantile kQuantiles[] = {
      {"p50", 0.5, 0.05}, {"p99", 0.99, 0.005}, {"p999", 0.999, 0.0005}};
  std::vector<LaunchParts> all;
  for (const auto& [key, data] : session.cases) {
    if (key.arm != kTraced || key.process_config.is_observer() ||
        !data.samples.contains("launch_ns"))
      continue;
    const std::vector<double> calls = data.of_all_runs("api_record_ns"),
                              launches = data.of_all_runs("launch_ns"),
                              kernels = data.of_all_runs("kernel_ns"),
                              overheads = data.of_all_runs("overhead_ns");
    const std::size_t n = launches.size();
    if (calls.size() != n || kernels.size() != n || overheads.size() != n) continue;
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return launches[i] + kernels[i]; });
    for (const auto& [name, p, half_width] : kQuantiles) {
      if (static_cast<double>(n) * (1 - p) < 1) continue;  // nothing beyond it was seen
      const auto rank = [&](double q) {
        return static_cast<std::size_t>(q * static_cast<double>(n - 1));
      };
      LaunchParts parts{key.device, key.name, name, 0, 0, 0, 0, 0};
      for (std::size_t r = rank(p - half_width); r <= rank(p + half_width); ++r) {
        const std::size_t i = order[r];
        ++parts.samples;
        const double in_call = std::min(calls[i], launches[i]);
        parts.call_ns += in_call;
        parts.queue_ns += launches[i] - in_call;
        parts.kernel_ns += kernels[i];
        parts.overhead_ns += overheads[i];
      }
      for (double* part : {&parts.call_ns, &parts.queue_ns, &parts.kernel_ns, &parts.overhead_ns})
        *part /= static_cast<double>(parts.samples);
      all.push_back(parts);
    }
  }
  return all;
}

std::vector<FlagCheck> flag_checks(const SessionData& session) {
  constexpr double kAllowedNs = 1000;
  std::vector<FlagCheck> checks;
  for (const DeviceFacts& device : session.devices) {
    const CaseData* flag = find_case(session, device.uuid, kTraced, "launch/flag");
    const CaseData* echo = find_case(session, device.uuid, kTraced, "launch/echo");
    if (!flag || !echo) continue;
    std::vector<double> excess = flag->of_all_runs("flag_excess_ns");
    const std::vector<double> round_trips = echo->of_all_runs("echo_ns");
    if (excess.empty() || round_trips.empty()) continue;
    FlagCheck check;
    check.device = device.uuid;
    check.samples = excess.size();
    for (const TraceInfo& trace : session.traces) {
      if (trace.device == device.uuid &&
          trace.record.case_name.value_or("").starts_with("launch/flag/"))
        check.before_kernel += trace.record.flags_before_kernel.value_or(0);
    }
    check.excess_p50_ns = *stats::median(std::move(excess));
    check.limit_ns = *stats::median(round_trips) + kAllowedNs;
    check.agrees = check.before_kernel == 0 && check.excess_p50_ns <= check.limit_ns;
    checks.push_back(check);
  }
  return checks;
}

}  // namespace launchgap
