#include "harness/summary/fallback.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/stats/stats.h"

namespace launchgap {
namespace {

bool is_work(const SummaryRow& row) {
  return row.metric == "device_ns" && row.status == Status::ok && row.p50 && *row.p50 > 0 &&
         row.key.arm == name_of(Arm::plain);
}

}  // namespace

std::vector<FallbackCost> fallback_costs(const SessionData& session,
                                         const std::vector<SummaryRow>& rows) {
  const auto is_host = [&](const SummaryRow& row) {
    const DeviceFacts* const device = session.device(row.key.device);
    return device && !is_gpu(*device);
  };
  std::map<std::string, double> host_ns;
  for (const SummaryRow& row : rows) {
    if (is_work(row) && is_host(row)) host_ns[row.key.name.text()] = *row.p50;
  }
  std::vector<FallbackCost> costs;
  for (const SummaryRow& row : rows) {
    const auto host = host_ns.find(row.key.name.text());
    if (is_work(row) && !is_host(row) && host != host_ns.end())
      costs.push_back({row.key.device, row.key.name, *row.p50, host->second});
  }
  return costs;
}

std::vector<Finding> fallback_findings(const SessionData& session,
                                       const std::vector<FallbackCost>& costs) {
  // A median over types would say nothing of any.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const FallbackCost*>>
      groups;
  for (const FallbackCost& cost : costs) {
    const std::string* const type = cost.name.find("type");
    groups[{cost.device, cost.name.benchmark, type ? *type : ""}].push_back(&cost);
  }
  std::vector<Finding> findings;
  for (auto& [key, group] : groups) {
    const auto& [uuid, benchmark, type] = key;
    const DeviceFacts* const device = session.device(uuid);
    std::ranges::sort(group, {}, &FallbackCost::ratio);
    std::vector<double> ratios;
    for (const FallbackCost* const cost : group) ratios.push_back(cost->ratio());
    const double middle = *stats::quantile(ratios, 0.5);
    const std::string family = benchmark.substr(0, benchmark.find('/'));
    Finding finding = new_finding(FindingSource::fallback,
                                  "fallback-" + family,
                                  Severity::note,
                                  device ? device->name : uuid,
                                  uuid);
    finding.sentence = fmt::format(
        "On the CPU a {}{} takes {} times as long as on {}{}{}.",
        family == "matmul" ? "matrix product" : family,
        type.empty() ? "" : " in " + type,
        times_text(middle),
        finding.subject,
        ratios.size() > 1 ? fmt::format(" (median of {} cases)", ratios.size()) : " (one case)",
        device && device->simulated ? ", simulated" : "");
    for (const FallbackCost* const cost : {group.front(), group.back()}) {
      finding.evidence.emplace_back(fmt::format("{} to {} on the CPU, {}",
                                                quantity(cost->gpu_ns, "ns"),
                                                quantity(cost->host_ns, "ns"),
                                                cost->name.text()),
                                    cost->ratio(),
                                    std::string(kTimes));
      if (group.size() == 1) break;
    }
    finding.remedy =
        "`launchgap doctor -- COMMAND` says whether your program uses the GPU, and why not.";
    if (middle > 1) finding.share = 1 - 1 / middle;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace launchgap
