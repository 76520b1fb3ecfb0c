#include "harness/gap/compared_devices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/gap/shared_cases.h"
#include "harness/rules/ratio.h"
#include "harness/summary/generations.h"

namespace launchgap::gap {
namespace {

/// A device with what it measured, by what a case is on any device.
struct Laid {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  ComparedSession from;
  const DeviceFacts* device = nullptr;
  bool published = false;
  std::map<Key, const SummaryRow*> rows = {};
};

bool has_arm(const SessionData& session, std::string_view arm) {
  return std::ranges::any_of(session.runs, [&](const RunInfo& run) { return run.arm == arm; });
}

/// Names a device's own launch path alike on every backend: a host's is a queue, a GPU's the
/// driver.
std::string case_on_any_device(const CaseName& on_its_own) {
  CaseName name = on_its_own;
  for (auto& [axis, value] : name.params) {
    if (axis == "api" && (value == "queue" || value == "driver")) value = "own";
  }
  return name.text();
}

Laid::Key key_of(const SummaryRow& row) {
  return {row.key.arm == kPublished ? std::string(name_of(Arm::plain)) : row.key.arm,
          row.key.setup.text(),
          case_on_any_device(row.key.name),
          row.metric};
}

void take_rows(Laid& laid) {
  for (const SummaryRow& row : *laid.from.rows) {
    if (row.key.device == laid.device->uuid && row.status == Status::ok && row.p50 &&
        *row.p50 > 0 && !row.key.setup.is_observer() && find_metric(row.metric))
      laid.rows.try_emplace(key_of(row), &row);
  }
}

/// Whether there is anything to compare: several sessions, several generations, or a table that
/// others published.
bool several(std::span<const Laid> laid) {
  std::set<const SessionData*> sessions;
  std::set<std::string> capabilities;
  for (const Laid& one : laid) {
    sessions.insert(one.from.session);
    if (!one.published && is_gpu(*one.device) && one.device->compute_capability &&
        std::ranges::any_of(*one.from.rows, [&](const SummaryRow& row) {
          return row.key.device == one.device->uuid;
        }))
      capabilities.insert(*one.device->compute_capability);
  }
  return sessions.size() > 1 || capabilities.size() > 1 ||
         (laid.size() > 1 && std::ranges::any_of(laid, &Laid::published));
}

std::vector<Laid> laid_side_by_side(std::span<const ComparedSession> sessions) {
  std::vector<Laid> laid;
  for (const ComparedSession& from : sessions) {
    if (has_arm(*from.session, kRecorded)) continue;
    const bool published = has_arm(*from.session, kPublished);
    for (const DeviceFacts& device : from.session->devices) {
      if (device.usable) laid.push_back({from, &device, published});
    }
  }
  if (!several(laid)) return {};
  std::ranges::stable_sort(laid, {}, [](const Laid& one) {
    const bool host = !is_gpu(*one.device);
    return std::tuple(!host,
                      host ? "" : release_of(*one.device).value_or(Release{"9999-99"}).month,
                      capability_numbers(*one.device).value_or(CapabilityNumbers(9999, 0)),
                      one.device->name);
  });
  return laid;
}

std::size_t reference_of(std::span<const Laid> laid) {
  const auto gpu = std::ranges::find_if(laid, [](const Laid& one) { return is_gpu(*one.device); });
  return gpu == laid.end() ? 0 : static_cast<std::size_t>(gpu - laid.begin());
}

/// "2.1× faster", "1.04× better, within the noise", "equal".
std::string words_of(const rules::Speedup& speedup, const Metric& metric) {
  const double factor = std::max(speedup.times, 1 / speedup.times);
  const rules::SpeedVerdict verdict = speedup.verdict();
  if (verdict == rules::SpeedVerdict::same) return "equal";
  const bool timed = metric.unit == "ns" || metric.unit.ends_with("/s");
  const bool more = speedup.times > 1;
  return fmt::format("{}× {}{}",
                     times_text(factor),
                     timed ? (more ? "faster" : "slower") : (more ? "better" : "worse"),
                     verdict == rules::SpeedVerdict::within_noise ? ", within the noise" : "");
}

/// Why no ratio is formed; empty where one is.
std::string_view why_not(const Laid& one,
                         const SummaryRow& row,
                         const Laid& reference,
                         const SummaryRow& base) {
  if (one.device->simulated != reference.device->simulated) return "not compared: one is simulated";
  if (is_gpu(*one.device) && is_gpu(*reference.device) && !timed_alike(row, base))
    return "not compared: timed in another way";
  return "";
}

GapRatioRow ratio_row(const Laid& one,
                      const SummaryRow& row,
                      const Laid& reference,
                      const SummaryRow& base,
                      std::size_t comparisons) {
  GapRatioRow ratio;
  ratio.session = one.from.session->id;
  ratio.key = &row.key;
  ratio.metric = row.metric;
  ratio.words = why_not(one, row, reference, base);
  if (!ratio.words.empty()) return ratio;
  const Metric& known = metric(row.metric);
  const bool rate = known.direction == Direction::higher_is_better;
  const double times = rate ? *row.p50 / *base.p50 : *base.p50 / *row.p50;
  const rules::Speedup speedup =
      rate ? rules::speedup(times, row.run_medians, base.run_medians, comparisons)
           : rules::speedup(times, base.run_medians, row.run_medians, comparisons);
  ratio.times = times;
  if (speedup.certain) {
    ratio.times_lower = speedup.certain->low;
    ratio.times_upper = speedup.certain->high;
  }
  ratio.verdict = name_of(speedup.verdict());
  ratio.words = words_of(speedup, known);
  return ratio;
}

}  // namespace

std::vector<GapDeviceRow> compared_devices(std::span<const ComparedSession> sessions) {
  const std::vector<Laid> laid = laid_side_by_side(sessions);
  std::vector<GapDeviceRow> rows;
  for (std::size_t i = 0; i < laid.size(); ++i)
    rows.push_back({laid[i].from.session->id, laid[i].device->uuid, i == reference_of(laid)});
  return rows;
}

void each_ratio(std::span<const ComparedSession> sessions,
                const std::function<void(const GapRatioRow&)>& put) {
  std::vector<Laid> laid = laid_side_by_side(sessions);
  for (Laid& one : laid) take_rows(one);
  if (laid.empty()) return;
  const Laid& reference = laid[reference_of(laid)];
  for (const Laid& one : laid) {
    if (&one == &reference) continue;
    std::vector<std::pair<const SummaryRow*, const SummaryRow*>> pairs;
    for (const auto& [key, row] : one.rows) {
      const auto base = reference.rows.find(key);
      if (base != reference.rows.end()) pairs.emplace_back(row, base->second);
    }
    for (const auto& [row, base] : pairs) put(ratio_row(one, *row, reference, *base, pairs.size()));
  }
}

}  // namespace launchgap::gap
