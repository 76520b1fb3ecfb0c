#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/fleet/fleet.h"
#include "harness/rules/scores.h"
#include "harness/stats/stats.h"

namespace launchgap::fleet {
namespace {

std::string evidence_of(const FleetRows& rows,
                        const FleetDeviceRow& device,
                        const FleetOutlierRow* worst) {
  std::vector<std::string> lines;
  if (device.cases_failed > 0)
    lines.push_back(fmt::format(
        "{} failed: {}", counted(device.cases_failed, "case"), printable(device.failure, 300)));
  if (worst) {
    const FleetMetricRow& metric = rows.metrics[worst->metric];
    lines.push_back(fmt::format("{} of {}: {}, {} times that of the others (95 % {:.2f} to {:.2f})",
                                metric.metric,
                                metric.key.name.text(),
                                quantity(worst->value, unit_of(metric.metric)),
                                times_text(worst->ratio),
                                worst->interval.low,
                                worst->interval.high));
    lines.push_back(fmt::format("worse in {} of {} metrics", device.worse, device.metrics));
  }
  if (device.relative_score && rules::is_straggler(*device.relative_score))
    lines.push_back(fmt::format("relative score {:.2f}", *device.relative_score));
  if (device.individual_score && rules::is_straggler(*device.individual_score))
    lines.push_back(fmt::format("individual score {:.2f}", *device.individual_score));
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

/// A score far below that of most of its kind: where one alone is fast, the others are not slow.
std::map<std::string, double> middle_scores(const FleetRows& rows) {
  std::map<std::string, std::vector<double>> scores;
  for (const FleetDeviceRow& device : rows.devices) {
    if (device.relative_score) scores[device.kind].push_back(*device.relative_score);
  }
  std::map<std::string, double> middle;
  for (auto& [kind, of_kind] : scores) middle[kind] = *stats::median(std::move(of_kind));
  return middle;
}

}  // namespace

double times_worse(const FleetOutlierRow& row) {
  const double times = std::max(row.ratio, 1 / row.ratio);
  return row.worse ? times : 1 / times;
}

void place_devices(FleetRows& rows) {
  const std::map<std::string, double> middle = middle_scores(rows);
  std::vector<const FleetOutlierRow*> worst(rows.devices.size(), nullptr);
  for (const FleetOutlierRow& row : rows.outliers) {
    if (row.worse && !worst[row.device]) worst[row.device] = &row;
  }
  const auto badness = [&](std::size_t i) {
    const FleetDeviceRow& device = rows.devices[i];
    const double own = device.relative_score.value_or(1);
    const auto of_kind = middle.find(device.kind);
    const bool below_kind =
        of_kind != middle.end() && rules::is_straggler(rules::score(own, of_kind->second));
    const double score = std::min(below_kind ? own : 1, device.individual_score.value_or(1));
    if (device.cases == 0 && device.cases_failed > 0)
      return std::numeric_limits<double>::infinity();
    return std::max(worst[i] ? times_worse(*worst[i]) : 1.0,
                    rules::is_straggler(score) ? 1 / score : 1.0);
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.devices.size(); ++i) {
    if (badness(i) > 1) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(), badness);
  for (std::size_t place = 0; place < order.size(); ++place) {
    FleetDeviceRow& device = rows.devices[order[place]];
    device.place = place + 1;
    device.evidence = evidence_of(rows, device, worst[order[place]]);
  }
}

namespace {

constexpr std::size_t kMostFindingsNamed = 10;

/// "NVIDIA H100 (n3, 0000:07:00.0)".
std::string label_of(const FleetDeviceRow& device) {
  return fmt::format("{} ({}, {})",
                     device.kind,
                     device.node,
                     device.pci_bus_id.empty() ? device.device : device.pci_bus_id);
}

Finding begin(std::string_view code, Severity severity, std::string subject) {
  return new_finding(FindingSource::session, code, severity, std::move(subject));
}

/// Of what is not named one by one: how many more there are, and where they are listed.
Finding rest(std::string_view code, std::string sentence, const char* where) {
  Finding finding = begin(code, Severity::distorts, "session");
  finding.sentence = std::move(sentence);
  finding.evidence.emplace_back(where);
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

/// Of each device, how many times worse it is in its worst metric; 0 where it is in none.
std::vector<double> worst_of_each(const FleetRows& rows) {
  std::vector<double> worst(rows.devices.size(), 0);
  for (const FleetOutlierRow& row : rows.outliers) {
    if (row.worse) worst[row.device] = std::max(worst[row.device], times_worse(row));
  }
  return worst;
}

/// Adds the devices of a node that are no worse than it explains: not much beyond what most of them
/// are at their worst.
void explain(const FleetRows& rows,
             const std::string& node,
             const std::string& kind,
             const std::vector<double>& worst,
             std::set<std::size_t>& explained) {
  std::vector<std::size_t> devices;
  for (std::size_t i = 0; i < rows.devices.size(); ++i) {
    if (worst[i] > 0 && rows.devices[i].node == node && rows.devices[i].kind == kind)
      devices.push_back(i);
  }
  if (devices.empty()) return;
  std::ranges::sort(devices, {}, [&](std::size_t i) { return worst[i]; });
  constexpr double kBeyond = 1.1;
  const double usual = worst[devices[(devices.size() - 1) / 2]];
  for (const std::size_t i : devices) {
    if (worst[i] <= kBeyond * usual && rows.devices[i].cases_failed == 0) explained.insert(i);
  }
}

/// Nodes of which all devices of a kind, and two at least, are worse in the same metrics; that of a
/// kind which three nodes have, since of two nodes either may be the odd one.
std::vector<Finding> slow_nodes(const FleetRows& rows, std::set<std::size_t>& explained) {
  const auto kinds = compared_devices(rows);
  const std::vector<double> worst = worst_of_each(rows);
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
    for (const FleetOutlierRow* row : devices) least = std::min(least, times_worse(*row));
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
    Finding finding = begin("fleet-node", Severity::distorts, node);
    finding.sentence = fmt::format(
        "All {} of {} that were compared ({}) are slower than those of other nodes, {} times at "
        "least in {} of {}: what they share, the node, is to be looked at first.",
        counted(one.worst->size(), "device"),
        node,
        kind,
        times_text(one.times),
        metric.metric,
        metric.key.name.text());
    finding.evidence.emplace_back(
        fmt::format("in {} all of them are slower", counted(one.metrics, "metric")));
    for (const FleetOutlierRow* row : *one.worst) {
      const bool above = row->ratio > 1;
      finding.evidence.emplace_back("slower: " + label_of(rows.devices[row->device]),
                                    times_worse(*row),
                                    std::string(kTimes),
                                    above ? row->interval.low : 1 / row->interval.high,
                                    above ? row->interval.high : 1 / row->interval.low);
    }
    finding.remedy =
        "compare the node's CPU, its governor, its BIOS and what else runs there with those of "
        "another node; `launchgap doctor` there tells the first";
    explain(rows, node, kind, worst, explained);
    found.emplace_back(one.times, std::move(finding));
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& one) { return one.first; });
  std::vector<Finding> findings;
  for (auto& [times, finding] : found) {
    if (findings.size() < kMostFindingsNamed) findings.push_back(std::move(finding));
  }
  if (const std::size_t more = found.size() - findings.size(); more > 0)
    findings.push_back(rest("fleet-nodes",
                            fmt::format("{} more {} slower as a whole than the others.",
                                        more,
                                        more == 1 ? "node is" : "nodes are"),
                            "fleet_outliers.csv has all of their devices"));
  return findings;
}

std::vector<Finding> standing_out(const FleetRows& rows, const std::set<std::size_t>& explained) {
  std::vector<const FleetDeviceRow*> odd;
  for (std::size_t i = 0; i < rows.devices.size(); ++i) {
    if (rows.devices[i].place && !explained.contains(i)) odd.push_back(&rows.devices[i]);
  }
  std::ranges::sort(odd, {}, [](const FleetDeviceRow* device) { return *device->place; });
  std::vector<Finding> findings;
  for (const FleetDeviceRow* device : odd) {
    if (findings.size() == kMostFindingsNamed) {
      const std::size_t more = odd.size() - kMostFindingsNamed;
      findings.push_back(
          rest("fleet-devices",
               fmt::format("{} more {} out.", more, more == 1 ? "device stands" : "devices stand"),
               "fleet_devices.csv has them by place"));
      break;
    }
    Finding finding = begin("fleet-device", Severity::distorts, device->device);
    finding.device = device->device;
    if (device->cases == 0) {
      finding.code = "fleet-failed";
      finding.severity = Severity::prevents;
      finding.sentence = fmt::format("{} gave no result: {} failed.",
                                     label_of(*device),
                                     counted(device->cases_failed, "case"));
    } else if (device->worse > 0) {
      finding.sentence = fmt::format("{} is slower than the others of its kind, in {} of {}.",
                                     label_of(*device),
                                     device->worse,
                                     counted(device->metrics, "metric"));
    } else {
      const bool relative = device->relative_score && rules::is_straggler(*device->relative_score);
      finding.sentence = fmt::format(
          "{} is slower than three quarters of {}.",
          label_of(*device),
          relative ? "the speed of the fastest of its kind" : "the speed that it had itself");
    }
    finding.evidence.emplace_back(device->evidence);
    if (device->worse == 0 && device->cases > 0)
      finding.unknown = "whether it is so in each run: it has fewer than three, or they differ";
    finding.remedy =
        device->cases == 0
            ? "run `launchgap doctor` on its node, and `launchgap health`"
            : fmt::format(
                  "look at {} for what was measured when, and measure the device again "
                  "beside another of its kind",
                  device->folder);
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Cases that failed or are invalid on devices that have results too.
std::vector<Finding> failed_cases(const FleetRows& rows) {
  std::vector<const FleetDeviceRow*> failed;
  for (const FleetDeviceRow& device : rows.devices) {
    if (device.cases_failed > 0 && device.cases > 0) failed.push_back(&device);
  }
  if (failed.empty()) return {};
  std::ranges::stable_sort(failed, std::greater<>(), &FleetDeviceRow::cases_failed);
  Finding finding = begin("fleet-cases-failed", Severity::distorts, "session");
  finding.sentence =
      fmt::format("On {} some cases failed or gave wrong results: these are in no comparison.",
                  counted(failed.size(), "device"));
  for (std::size_t i = 0; i < std::min(failed.size(), kMostFindingsNamed); ++i)
    finding.evidence.emplace_back(fmt::format("{}: {}, such as {}",
                                              label_of(*failed[i]),
                                              counted(failed[i]->cases_failed, "case"),
                                              printable(failed[i]->failure, 300)));
  finding.remedy = "fleet_failures.csv has every reason, and on how many devices it is";
  return {finding};
}

/// Kinds of which a quarter is far from another quarter: then neither is the odd one.
std::vector<Finding> apart(const FleetRows& rows) {
  constexpr double kLeastApart = 1.05;
  struct Kind {
    std::size_t metrics = 0;
    const FleetMetricRow* most = nullptr;
  };
  std::map<std::string, Kind> kinds;
  for (const FleetMetricRow& metric : rows.metrics) {
    if (metric.devices < 4 || metric.q3 < kLeastApart * metric.q1) continue;
    Kind& kind = kinds[metric.kind];
    ++kind.metrics;
    if (!kind.most || metric.q3 / metric.q1 > kind.most->q3 / kind.most->q1) kind.most = &metric;
  }
  std::vector<Finding> findings;
  for (const auto& [name, kind] : kinds) {
    Finding finding = begin("fleet-apart", Severity::distorts, name);
    const std::string_view unit = unit_of(kind.most->metric);
    finding.sentence = fmt::format(
        "The devices of {} lie far apart in {}, most in {} of {}: a quarter is at {} or below, and "
        "a quarter at {} or above.",
        name,
        counted(kind.metrics, "metric"),
        kind.most->metric,
        kind.most->key.name.text(),
        quantity(kind.most->q1, unit),
        quantity(kind.most->q3, unit));
    if (kind.most->host_share)
      finding.evidence.emplace_back(
          "of the variance is between hosts", *kind.most->host_share, std::string(kShareUnit));
    finding.remedy = "compare what the two have: drivers, clocks, power limits, CPUs";
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// What it says that no device stands out.
std::vector<Finding> nothing_odd(const FleetRows& rows, bool lie_apart) {
  std::size_t compared = 0, kinds = 0, measured = 0;
  for (const auto& [kind, nodes] : compared_devices(rows)) {
    ++kinds;
    for (const auto& [node, devices] : nodes) compared += devices;
  }
  for (const FleetDeviceRow& device : rows.devices) measured += device.cases > 0;
  if (compared == 0) {
    Finding finding =
        begin("fleet-alone", measured > 0 ? Severity::open : Severity::prevents, "session");
    finding.sentence = measured > 0 ? "No device has a metric in common with another of its kind, "
                                      "so none can be called slow."
                                    : "No device has a result.";
    return {finding};
  }
  if (lie_apart) return {};
  std::set<std::size_t> low;  // devices
  for (const FleetScoreRow& score : rows.scores) low.insert(score.device);
  Finding finding = begin("fleet-even", low.empty() ? Severity::fine : Severity::note, "session");
  finding.sentence = fmt::format(
      "None of {} of {} stands out: none is worse than its kind by more than 2 %, by more than "
      "chance, and by more than its kind spreads anyway.",
      counted(compared, "device"),
      counted(kinds, "kind"));
  if (!low.empty())
    finding.evidence.emplace_back(
        fmt::format("single times score below {:g} on {}: fleet_scores.csv has them",
                    rules::kStragglerScore,
                    counted(low.size(), "device")));
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
  Finding finding = begin("fleet-few-runs", Severity::open, "session");
  finding.sentence = fmt::format(
      "Of {}, {} with fewer than three runs of each case cannot be told to differ from their kind.",
      counted(compared, "device"),
      without_interval);
  finding.remedy = "put more nights together, or measure with `--runs 3` or more";
  return {finding};
}

}  // namespace

std::vector<Finding> fleet_findings(const FleetRows& rows) {
  std::set<std::size_t> explained;  // devices
  std::vector<Finding> all = slow_nodes(rows, explained);
  const std::vector<Finding> far = apart(rows);
  for (std::vector<Finding> more :
       {standing_out(rows, explained), far, failed_cases(rows), too_few_runs(rows)})
    for (Finding& finding : more) all.push_back(std::move(finding));
  const bool any = std::ranges::any_of(
      rows.devices, [](const FleetDeviceRow& device) { return device.place.has_value(); });
  if (any) return all;
  const auto judged = [](const FleetDeviceRow& device) { return device.judged; };
  const bool compared = std::ranges::any_of(
      rows.devices, [](const FleetDeviceRow& device) { return device.metrics > 0; });
  if (!compared || std::ranges::any_of(rows.devices, judged))
    for (Finding& finding : nothing_odd(rows, !far.empty())) all.push_back(std::move(finding));
  return all;
}

}  // namespace launchgap::fleet
