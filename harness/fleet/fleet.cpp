#include "harness/fleet/fleet.h"

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/rules/outliers.h"
#include "harness/rules/scores.h"
#include "harness/stats/random_effects.h"
#include "harness/summary/headlines.h"

namespace launchgap::fleet {
namespace {

namespace fs = std::filesystem;

/// What one session has of a metric on a device.
struct Observation {
  std::uint32_t device = 0;                    // its index
  std::uint32_t runs_begin = 0, runs_end = 0;  // of its run medians, in FleetReader::medians_
  double p50 = 0, time = 0;
};

/// A metric of a case, and all that was seen of it.
struct Series {
  std::string arm, process_config, case_name, metric;
  std::vector<Observation> seen;  // by session, in the order in which these began
};

/// What a session failed at, by status and reason.
struct Failure {
  std::set<std::string> cases;
  std::set<std::uint32_t> devices;
};

/// Of a device: its values of a series, over its sessions.
struct OfDevice {
  std::size_t device = 0;
  std::vector<double> runs;  // medians
  std::vector<const Observation*> sessions;

  double value() const { return *stats::median(runs); }
};

class FleetReader {
 public:
  explicit FleetReader(const fs::path& folder) { fleet_.session = read_session_facts(folder); }

  Fleet read() {
    list_devices();
    read_tables();
    count_cases();
    for (auto& [key, series] : series_) ordered_.push_back(&series);
    std::ranges::sort(ordered_, {}, [](const Series* one) {
      return std::tuple(
          CaseName::parse(one->case_name), one->arm, one->process_config, one->metric);
    });
    for (const Series* one : ordered_) compare(*one);
    choose_headings();
    std::ranges::stable_sort(rows().outliers, std::greater<>(), times_worse);
    score_devices();
    list_failures();
    place_devices(rows());
    rows().findings = fleet_findings(rows());
    return std::move(fleet_);
  }

 private:
  FleetRows& rows() { return fleet_.rows; }

  // --- what is there ---

  void list_devices() {
    const SessionData& session = fleet_.session;
    std::vector<const DeviceFacts*> all;
    for (const DeviceFacts& facts : session.devices) all.push_back(&facts);
    std::ranges::sort(all, {}, [&](const DeviceFacts* facts) {
      return std::tuple(session.node_of(facts->uuid),
                        !is_gpu(*facts),
                        facts->pci_bus_id.value_or(""),
                        facts->uuid);
    });
    std::map<std::string, std::size_t> slots;  // by node
    for (const DeviceFacts* facts : all) {
      FleetDeviceRow row;
      row.node = session.node_of(facts->uuid);
      row.device = facts->uuid;
      row.kind = facts->name;
      row.backend = facts->backend;
      row.pci_bus_id = facts->pci_bus_id.value_or("");
      row.slot = slots[row.node]++;
      row.simulated = facts->simulated;
      if (!facts->usable) row.reason = facts->reason;
      places_.emplace(row.device, static_cast<std::uint32_t>(rows().devices.size()));
      rows().devices.push_back(std::move(row));
    }
  }

  void read_tables() {
    std::vector<const SessionPart*> parts;
    SessionPart own;  // of a session that was not put together
    own.folder = ".";
    for (const SessionPart& part : fleet_.session.parts) {
      if (part.left_out.empty()) parts.push_back(&part);
    }
    if (fleet_.session.parts.empty()) parts.push_back(&own);
    std::ranges::stable_sort(parts, {}, [](const SessionPart* part) { return part->begin_utc; });
    constexpr std::size_t kAtOnce = 2, kBatch = 16;
    using Tables = std::vector<PartTable>;
    const auto read_batch = [&](std::size_t first) {
      Tables tables;
      for (std::size_t i = first; i < std::min(first + kBatch, parts.size()); ++i) {
        if (stop_signal != 0) throw Stopped();
        const std::string& folder = parts[i]->folder;
        tables.push_back(read_part_table((fleet_.session.folder / folder).lexically_normal(),
                                         !fleet_.session.unended.contains(folder)));
      }
      return tables;
    };
    std::vector<std::future<Tables>> reading;
    for (std::size_t next = 0, taken = 0; taken < parts.size();) {
      while (next < parts.size() && reading.size() <= kAtOnce) {
        reading.push_back(std::async(std::launch::async, read_batch, next));
        next += kBatch;
      }
      const Tables tables = reading.front().get();
      reading.erase(reading.begin());
      for (const PartTable& table : tables) {
        take(*parts[taken], table);
        ++taken;
      }
    }
  }

  void take(const SessionPart& part, const PartTable& table) {
    if (!table.problem.empty())
      rows().problems.push_back(fmt::format("{}: {}", part.folder, table.problem));
    if (table.from_records) ++rows().from_records;
    std::set<std::uint32_t> measured;
    std::string key;
    for (const PartRow& row : table.rows) {
      const auto place = places_.find(row.device);
      if (place == places_.end()) continue;
      const std::uint32_t device = place->second;
      const bool fails = row.status == Status::failed || row.status == Status::invalid;
      if (fails) mark(failed_, device, row.case_name);
      if (row.status != Status::ok && row.status != Status::unsupported) {
        Failure& failure = failures_[{row.status, row.reason}];
        failure.cases.insert(row.case_name);
        failure.devices.insert(device);
        if (fails) first_reasons_.try_emplace(device, row.case_name + ": " + row.reason);
      }
      // What failed in some run proves nothing in the others.
      if (row.status != Status::ok || row.metric.empty() || row.run_medians.empty()) continue;
      mark(measured_, device, row.case_name);
      measured.insert(device);
      key = row.arm;
      for (const std::string* more : {&row.process_config, &row.case_name, &row.metric})
        key.append("\n").append(*more);
      auto found = series_.find(key);
      if (found == series_.end()) {
        found = series_.emplace(key, Series()).first;
        found->second = {row.arm, row.process_config, row.case_name, row.metric, {}};
      }
      Observation seen;
      seen.device = device;
      seen.runs_begin = static_cast<std::uint32_t>(medians_.size());
      medians_.insert(medians_.end(), row.run_medians.begin(), row.run_medians.end());
      seen.runs_end = static_cast<std::uint32_t>(medians_.size());
      seen.p50 = row.p50;
      seen.time = row.time;
      found->second.seen.push_back(seen);
    }
    for (const std::uint32_t device : measured) {
      FleetDeviceRow& row = rows().devices[device];
      row.folder = part.folder;
      ++row.sessions;
    }
  }

  using Cases = std::vector<std::vector<bool>>;  // by device and the number of the case

  void mark(Cases& cases, std::uint32_t device, const std::string& name) {
    const std::size_t number = case_numbers_.try_emplace(name, case_numbers_.size()).first->second;
    cases.resize(rows().devices.size());
    if (cases[device].size() <= number) cases[device].resize(number + 1);
    cases[device][number] = true;
  }

  void count_cases() {
    measured_.resize(rows().devices.size());
    failed_.resize(rows().devices.size());
    for (std::size_t i = 0; i < rows().devices.size(); ++i) {
      FleetDeviceRow& row = rows().devices[i];
      row.cases = static_cast<std::size_t>(std::ranges::count(measured_[i], true));
      row.cases_failed = static_cast<std::size_t>(std::ranges::count(failed_[i], true));
      const auto reason = first_reasons_.find(static_cast<std::uint32_t>(i));
      if (reason == first_reasons_.end()) continue;
      row.failure = reason->second;
      if (row.cases == 0 && row.reason.empty()) row.reason = reason->second;
    }
  }

  // --- one metric ---

  /// The devices of each kind that have it.
  std::map<std::string, std::vector<OfDevice>> by_kind(const Series& series) const {
    std::map<std::uint32_t, OfDevice> devices;
    for (const Observation& seen : series.seen) {
      OfDevice& device = devices[seen.device];
      device.device = seen.device;
      device.runs.insert(
          device.runs.end(), medians_.begin() + seen.runs_begin, medians_.begin() + seen.runs_end);
      device.sessions.push_back(&seen);
    }
    std::map<std::string, std::vector<OfDevice>> kinds;
    for (auto& [index, device] : devices)
      kinds[fleet_.rows.devices[index].kind].push_back(std::move(device));
    return kinds;
  }

  /// How many metrics the devices of a kind are compared in.
  std::size_t comparisons(const std::string& kind) {
    if (comparisons_.empty()) {
      for (const Series* one : ordered_) {
        if (!is_compared(*one)) continue;
        std::set<std::string_view> kinds;
        for (const Observation& seen : one->seen) kinds.insert(rows().devices[seen.device].kind);
        for (const std::string_view each : kinds) ++comparisons_[std::string(each)];
      }
    }
    return comparisons_[kind];
  }

  static bool is_compared(const Series& series) {
    return series.arm == name_of(Arm::plain) && !ProcessConfig(series.process_config).is_observer();
  }

  void compare(const Series& series) {
    if (!is_compared(series)) return;
    const Metric* const metric = find_metric(series.metric);
    const bool less_is_better = !metric || metric->direction == Direction::lower_is_better;
    for (const auto& [kind, devices] : by_kind(series)) {
      const std::size_t index = rows().metrics.size();
      FleetMetricRow row;
      row.kind = kind;
      row.key = {"", series.arm, series.process_config, CaseName::parse(series.case_name)};
      row.metric = series.metric;
      describe(devices, row);
      std::vector<std::vector<double>> groups;
      for (const OfDevice& device : devices) groups.push_back(device.runs);
      const bool may_head = headline_of(row) != nullptr;
      const auto deviations = rules::deviations(groups, comparisons(kind));
      for (std::size_t i = 0; i < devices.size(); ++i) {
        const double value = devices[i].value();
        FleetDeviceRow& of_device = rows().devices[devices[i].device];
        const double times = value / row.p50;
        if (devices.size() > 1) {
          levels_[devices[i].device].push_back(less_is_better ? times : 1 / times);
          ++of_device.metrics;
        }
        const rules::Deviation& deviation = deviations[i];
        of_device.judged = of_device.judged || deviation.interval.has_value();
        if (deviation.deviates) {
          ++row.outliers;
          const bool worse = (*deviation.ratio > 1) == less_is_better;
          if (worse) ++of_device.worse;
          rows().outliers.push_back(
              {devices[i].device, index, value, *deviation.ratio, *deviation.interval, worse});
        }
        if (may_head)
          rows().values.push_back({static_cast<std::uint32_t>(devices[i].device),
                                   static_cast<std::uint32_t>(index),
                                   value,
                                   deviation.deviates});
      }
      if (metric && metric->unit == "ns" && less_is_better) score(devices, index, *metric);
      rows().metrics.push_back(std::move(row));
    }
  }

  void describe(const std::vector<OfDevice>& devices, FleetMetricRow& row) {
    std::vector<double> values;
    std::map<std::string_view, std::vector<std::vector<double>>> hosts;
    for (const OfDevice& device : devices) {
      values.push_back(device.value());
      hosts[rows().devices[device.device].node].push_back(device.runs);
    }
    std::ranges::sort(values);
    row.devices = devices.size();
    row.nodes = hosts.size();
    row.min = values.front();
    row.p05 = *stats::quantile(values, 0.05);
    row.q1 = *stats::quantile(values, 0.25);
    row.p50 = *stats::quantile(values, 0.5);
    row.q3 = *stats::quantile(values, 0.75);
    row.p95 = *stats::quantile(values, 0.95);
    row.max = values.back();
    std::vector<std::vector<std::vector<double>>> nested;
    for (auto& [node, of_node] : hosts) nested.push_back(std::move(of_node));
    const stats::NestedEffects effects = stats::nested_effects(nested);
    const double all =
        effects.host.value_or(0) + effects.device.value_or(0) + effects.run.value_or(0);
    const auto share = [all](const std::optional<double>& variance) {
      return variance && all > 0 ? std::optional(*variance / all) : std::nullopt;
    };
    row.host_share = share(effects.host);
    row.device_share = share(effects.device);
    row.run_share = share(effects.run);
  }

  /// The number that a person looks for first and that this may be; or null.
  const Headline* headline_of(const FleetMetricRow& row) const {
    for (const NamedHeadline& named : headlines_) {
      const Headline& headline = *named.headline;
      // Tails are not compared between devices: a run's p99.9 is one sample of a thousand.
      if (headline.of != Headline::Of::one_in_1000 && row.key.process_config.usual() &&
          row.key.name.benchmark == named.benchmark->name && row.metric == headline.metric &&
          row.key.name.has(headline.params))
        return &headline;
    }
    return nullptr;
  }

  /// Of each kind one case for each number that a person looks for first.
  void choose_headings() {
    std::map<std::pair<std::string_view, const Headline*>, FleetMetricRow*> chosen;
    for (FleetMetricRow& row : rows().metrics) {
      const Headline* const headline = headline_of(row);
      if (!headline) continue;
      FleetMetricRow*& one = chosen[{row.kind, headline}];
      const bool better = headline->of == Headline::Of::best_median && one && one->p50 < row.p50;
      if (!one || better) one = &row;
    }
    for (const auto& [key, row] : chosen) {
      row->heading = key.second->heading;
      row->place = place_of(*key.second);
    }
    // Of the others nobody draws the values.
    std::erase_if(rows().values, [this](const FleetValueRow& value) {
      return rows().metrics[value.metric].heading.empty();
    });
  }

  // --- scores ---

  void score(const std::vector<OfDevice>& devices, std::size_t index, const Metric& metric) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const OfDevice& device : devices) fastest = std::min(fastest, device.value());
    for (const OfDevice& device : devices) {
      FleetScoreRow row{device.device, index, std::nullopt, std::nullopt};
      double time = 0, best = std::numeric_limits<double>::infinity();
      for (const Observation* session : device.sessions) {
        time += session->time;
        best = std::min(best, session->p50);
      }
      const Observation& last = *device.sessions.back();
      if (devices.size() > 1) row.relative = rules::score(fastest, device.value());
      if (device.sessions.size() > 1) row.individual = rules::score(best, last.p50);
      if (metric.key == "device_ns") {
        if (row.relative) relative_[device.device].add(*row.relative, time);
        if (row.individual) individual_[device.device].add(*row.individual, last.time);
      }
      const auto is_low = [](const std::optional<double>& score) {
        return score && rules::is_straggler(*score);
      };
      if (is_low(row.relative) || is_low(row.individual)) rows().scores.push_back(row);
    }
  }

  void score_devices() {
    std::ranges::stable_sort(rows().scores, {}, [](const FleetScoreRow& row) {
      return std::min(row.relative.value_or(1), row.individual.value_or(1));
    });
    for (const auto& [device, score] : relative_)
      rows().devices[device].relative_score = score.value();
    for (const auto& [device, score] : individual_)
      rows().devices[device].individual_score = score.value();
    for (auto& [device, levels] : levels_)
      rows().devices[device].level = stats::median(std::move(levels));
  }

  // --- what stands out ---

  void list_failures() {
    constexpr std::size_t kNamed = 8;
    for (const auto& [key, failure] : failures_) {
      FleetFailureRow row;
      row.status = name_of(key.first);
      row.reason = key.second;
      row.example = *failure.cases.begin();
      row.cases = failure.cases.size();
      row.devices = failure.devices.size();
      std::set<std::string> nodes;
      for (const std::uint32_t device : failure.devices) nodes.insert(rows().devices[device].node);
      row.nodes = nodes.size();
      row.where = list_text(nodes, kNamed);
      rows().failures.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows().failures, std::greater<>(), &FleetFailureRow::devices);
  }

  Fleet fleet_;
  std::unordered_map<std::string, std::uint32_t> places_;  // of devices, by UUID
  std::unordered_map<std::string, Series> series_;
  std::vector<const Series*> ordered_;
  std::vector<double> medians_;  // of all runs of all observations
  std::map<std::pair<Status, std::string>, Failure> failures_;
  std::map<std::uint32_t, std::string> first_reasons_;  // by device
  std::unordered_map<std::string, std::size_t> case_numbers_;
  Cases measured_, failed_;
  std::map<std::string, std::size_t> comparisons_;  // by kind
  std::map<std::size_t, std::vector<double>> levels_;
  std::map<std::size_t, rules::DeviceScore> relative_, individual_;
  const std::vector<NamedHeadline> headlines_ = all_headlines();
};

}  // namespace

Fleet read_fleet(const fs::path& folder) {
  return FleetReader(folder).read();
}

}  // namespace launchgap::fleet
