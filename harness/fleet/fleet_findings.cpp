#include "harness/fleet/fleet_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/rules/scores.h"

namespace launchgap::fleet {
namespace {

constexpr std::size_t kMostFindingsNamed = 10;

/// "NVIDIA H100 (n3, 0000:07:00.0)".
std::string label_of(const FleetDeviceRow& device) {
  return fmt::format("{} ({}, {})",
                     device.kind,
                     device.node,
                     device.pci_bus_id.empty() ? device.device : device.pci_bus_id);
}

Finding begin(std::string code, Severity severity) {
  Finding finding;
  finding.source = FindingSource::session;
  finding.code = std::move(code);
  finding.severity = severity;
  return finding;
}

/// The devices of a kind that were compared, by node.
std::map<std::string, std::map<std::string, std::size_t>> compared_devices(const FleetRows& rows) {
  std::map<std::string, std::map<std::string, std::size_t>> kinds;
  for (const FleetDeviceRow& device : rows.devices) {
    if (device.metrics > 0) ++kinds[device.kind][device.node];
  }
  return kinds;
}

/// Nodes of which all devices of a kind, and two at least, are worse in the same metrics; that of a
/// kind which three nodes have, since of two nodes either may be the odd one.
std::vector<Finding> slow_nodes(const FleetRows& rows, std::set<std::string>& explained) {
  const auto kinds = compared_devices(rows);
  std::map<std::tuple<std::string, std::string, std::size_t>, std::vector<const FleetOutlierRow*>>
      worse;  // by node, kind and metric
  for (const FleetOutlierRow& row : rows.outliers) {
    const FleetDeviceRow& device = rows.devices[row.device];
    if (row.worse) worse[{device.node, device.kind, row.metric}].push_back(&row);
  }
  struct Slow {
    std::size_t metrics = 0;
    const std::vector<const FleetOutlierRow*>* worst = nullptr;
    double times = 1;
  };
  std::map<std::pair<std::string, std::string>, Slow> slow;
  for (const auto& [key, devices] : worse) {
    const auto& [node, kind, metric] = key;
    const auto& nodes = kinds.at(kind);
    const std::size_t all = nodes.at(node);
    if (nodes.size() < 3 || all < 2 || devices.size() < all) continue;
    Slow& one = slow[{node, kind}];
    ++one.metrics;
    double least = 1e300;  // what all of them have at least
    for (const FleetOutlierRow* row : devices)
      least = std::min(least, std::max(row->ratio, 1 / row->ratio));
    if (least > one.times) {
      one.times = least;
      one.worst = &devices;
    }
  }
  std::vector<std::pair<double, Finding>> found;
  for (const auto& [where, one] : slow) {
    if (!one.worst) continue;
    const auto& [node, kind] = where;
    const FleetMetricRow& metric = rows.metrics[one.worst->front()->metric];
    Finding finding = begin("fleet-node", Severity::distorts);
    finding.subject = node;
    finding.sentence = fmt::format(
        "All {} of {} ({}) are slower than those of other nodes, {} times at least in {} of {}: "
        "what they share, the node, is to be looked at first.",
        counted(one.worst->size(), "device"),
        node,
        kind,
        times_text(one.times),
        metric.metric,
        metric.key.name.text());
    finding.evidence.emplace_back(
        fmt::format("in {} all of them are slower", counted(one.metrics, "metric")));
    for (const FleetOutlierRow* row : *one.worst)
      finding.evidence.emplace_back(label_of(rows.devices[row->device]),
                                    row->ratio,
                                    std::string(kTimes),
                                    row->interval.low,
                                    row->interval.high);
    finding.remedy =
        "compare the node's CPU, its governor, its BIOS and what else runs there with those of "
        "another node; `launchgap doctor` there tells the first";
    explained.insert(node + "\n" + kind);
    found.emplace_back(one.times, std::move(finding));
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& one) { return one.first; });
  std::vector<Finding> findings;
  for (auto& [times, finding] : found) {
    if (findings.size() < kMostFindingsNamed) {
      findings.push_back(std::move(finding));
      continue;
    }
    Finding rest = begin("fleet-nodes", Severity::distorts);
    rest.subject = "session";
    rest.sentence = fmt::format("{} more are slower as a whole than the others.",
                                counted(found.size() - kMostFindingsNamed, "node"));
    rest.evidence.emplace_back("fleet_outliers.csv has all of their devices");
    findings.push_back(std::move(rest));
    break;
  }
  return findings;
}

std::vector<Finding> slow_devices(const FleetRows& rows, const std::set<std::string>& explained) {
  std::vector<const FleetDeviceRow*> odd;
  for (const FleetDeviceRow& device : rows.devices) {
    if (device.place && !explained.contains(device.node + "\n" + device.kind))
      odd.push_back(&device);
  }
  std::ranges::sort(odd, {}, [](const FleetDeviceRow* device) { return *device->place; });
  std::vector<Finding> findings;
  for (const FleetDeviceRow* device : odd) {
    if (findings.size() == kMostFindingsNamed) {
      Finding rest = begin("fleet-devices", Severity::distorts);
      rest.subject = "session";
      rest.sentence = fmt::format("{} more are slower than the others of their kind.",
                                  counted(odd.size() - kMostFindingsNamed, "device"));
      rest.evidence.emplace_back("fleet_devices.csv has them by place");
      findings.push_back(std::move(rest));
      break;
    }
    Finding finding = begin("fleet-device", Severity::distorts);
    finding.subject = device->device;
    finding.device = device->device;
    finding.sentence =
        device->worse > 0
            ? fmt::format("{} is slower than the others of its kind, in {} of {}.",
                          label_of(*device),
                          device->worse,
                          counted(device->metrics, "metric"))
            : fmt::format("{} is slower than three quarters of {}.",
                          label_of(*device),
                          device->relative_score && rules::is_straggler(*device->relative_score)
                              ? "the speed of the fastest of its kind"
                              : "the speed that it had itself");
    finding.evidence.emplace_back(device->evidence);
    if (device->worse == 0)
      finding.unknown = "whether it is so in each run: it has fewer than three, or they differ";
    finding.remedy = fmt::format(
        "look at {} for what was measured when, and measure the device again beside another of "
        "its kind",
        device->folder);
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// What it says that no device differs.
std::vector<Finding> nothing_odd(const FleetRows& rows) {
  std::size_t compared = 0, kinds = 0;
  for (const auto& [kind, nodes] : compared_devices(rows)) {
    ++kinds;
    for (const auto& [node, devices] : nodes) compared += devices;
  }
  if (compared == 0) {
    Finding finding = begin("fleet-alone", Severity::open);
    finding.subject = "session";
    finding.sentence = "No device has another of its kind, so none can be called slow.";
    return {finding};
  }
  Finding finding = begin("fleet-even", Severity::fine);
  finding.subject = "session";
  finding.sentence = fmt::format(
      "None of {} of {} stands out: none is worse than its kind by more than 2 % and "
      "by more than chance, and no score is below {:g}.",
      counted(compared, "device"),
      counted(kinds, "kind"),
      rules::kStragglerScore);
  finding.unknown = "what all of a kind share, and what happens in some runs only";
  return {finding};
}

/// Devices that cannot be named for want of runs.
std::vector<Finding> too_few_runs(const FleetRows& rows) {
  std::size_t without_interval = 0, compared = 0;
  for (const FleetDeviceRow& device : rows.devices) {
    if (device.metrics == 0) continue;
    ++compared;
    if (!device.judged) ++without_interval;
  }
  if (without_interval == 0) return {};
  Finding finding = begin("fleet-few-runs", Severity::open);
  finding.subject = "session";
  finding.sentence = fmt::format(
      "Of {}, {} with fewer than three runs of each case cannot be told to differ from their kind.",
      counted(compared, "device"),
      without_interval);
  finding.remedy = "put more nights together, or measure with `--runs 3` or more";
  return {finding};
}

}  // namespace

std::vector<Finding> fleet_findings(const FleetRows& rows) {
  std::set<std::string> explained;  // nodes and kinds
  std::vector<Finding> all = slow_nodes(rows, explained);
  for (std::vector<Finding> more : {slow_devices(rows, explained), too_few_runs(rows)})
    for (Finding& finding : more) all.push_back(std::move(finding));
  const bool any = std::ranges::any_of(
      rows.devices, [](const FleetDeviceRow& device) { return device.place.has_value(); });
  if (any) return all;
  const bool judged =
      std::ranges::any_of(rows.devices, [](const FleetDeviceRow& device) { return device.judged; });
  if (judged || all.empty())
    for (Finding& finding : nothing_odd(rows)) all.push_back(std::move(finding));
  return all;
}

}  // namespace launchgap::fleet
