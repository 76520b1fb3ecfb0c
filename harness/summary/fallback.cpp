#include "harness/summary/fallback.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/device/backend.h"
#include "harness/stats/stats.h"

namespace launchgap {
namespace {

bool is_work(const SummaryRow& row) {
  return row.metric == "device_ns" && row.status == Status::ok && row.p50 && *row.p50 > 0 &&
         row.key.arm == name_of(Arm::plain);
}

/// "61", "4.2": what is twice as slow or a hundred times is read at a glance.
std::string times(double ratio) {
  return ratio < 10 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
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

std::vector<Sentence> fallback_sentences(const SessionData& session,
                                         const std::vector<FallbackCost>& costs) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> ratios;
  for (const FallbackCost& cost : costs)
    ratios[{cost.device, cost.name.benchmark}].push_back(cost.ratio());
  std::vector<Sentence> sentences;
  for (auto& [key, values] : ratios) {
    const DeviceFacts* const device = session.device(key.first);
    std::ranges::sort(values);
    const std::string family = key.second.substr(0, key.second.find('/'));
    const std::string range = values.size() > 1 ? fmt::format(" ({} to {} over {} cases)",
                                                              times(values.front()),
                                                              times(values.back()),
                                                              values.size())
                                                : " (one case)";
    sentences.push_back(
        {key.first,
         fmt::format("Falling back to the CPU: a {} takes {} times as long as on {}{}{}.",
                     family == "matmul" ? "matrix product" : family,
                     times(stats::quantile(values, 0.5).value_or(0)),
                     device ? device->name : key.first,
                     range,
                     device && device->simulated ? ", simulated" : "")});
  }
  return sentences;
}

}  // namespace launchgap
