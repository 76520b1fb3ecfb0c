#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/fleet/fleet_findings.h"
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

}  // namespace launchgap::fleet
