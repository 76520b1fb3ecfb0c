#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/gap/gap.h"
#include "harness/gap/shared_cases.h"
#include "harness/rules/ratio.h"
#include "harness/summary/recorded_process.h"

namespace launchgap::gap {
namespace {

/// A device with what it measured, by what a case is on any device.
struct Laid {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  const SessionData* session = nullptr;
  const DeviceFacts* device = nullptr;
  DeviceOrder order;
  std::vector<const SummaryRow*> measured;  // all of its rows
};

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
          row.key.process_config.text(),
          case_on_any_device(row.key.name),
          row.metric};
}

std::map<Laid::Key, const SummaryRow*> comparable_rows(const Laid& laid) {
  std::map<Laid::Key, const SummaryRow*> rows;
  for (const SummaryRow* row : laid.measured) {
    if (row->status == Status::ok && row->p50 && *row->p50 > 0 &&
        !row->key.process_config.is_observer() && find_metric(row->metric))
      rows.try_emplace(key_of(*row), row);
  }
  return rows;
}

/// Whether there is anything to compare: several sessions, several generations, or a table that
/// others published.
bool several(std::span<const Laid> laid) {
  std::set<const SessionData*> sessions;
  std::set<std::string> capabilities;
  for (const Laid& one : laid) {
    sessions.insert(one.session);
    if (!one.session->has_arm(kPublished) && is_gpu(*one.device) &&
        one.device->compute_capability && !one.measured.empty())
      capabilities.insert(*one.device->compute_capability);
  }
  return sessions.size() > 1 || capabilities.size() > 1 ||
         (laid.size() > 1 && laid.front().session->has_arm(kPublished));
}

std::vector<Laid> laid_side_by_side(std::span<const ComparedSession> sessions) {
  std::vector<Laid> laid;
  for (const ComparedSession& from : sessions) {
    if (from.session->has_arm(kRecorded)) continue;
    const RowsByDevice rows(*from.rows);
    for (const DeviceFacts& device : from.session->devices) {
      if (device.usable)
        laid.push_back({from.session, &device, order_of(device), rows.of(device.uuid)});
    }
  }
  if (!several(laid)) return {};
  std::ranges::stable_sort(laid, {}, &Laid::order);
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
  ratio.session = one.session->id;
  ratio.key = &row.key;
  ratio.metric = row.metric;
  ratio.words = why_not(one, row, reference, base);
  if (!ratio.words.empty()) return ratio;
  const Metric& known = metric(row.metric);
  const rules::Speedup speedup = speedup_of(known,
                                            times_as_fast(known, *row.p50, *base.p50),
                                            row.run_medians,
                                            base.run_medians,
                                            comparisons);
  ratio.times = speedup.times;
  if (speedup.certain) {
    ratio.times_lower = speedup.certain->low;
    ratio.times_upper = speedup.certain->high;
  }
  ratio.verdict = name_of(speedup.verdict());
  ratio.words = words_of(speedup, known);
  return ratio;
}

/// Metrics of a recorded launch, each with the arm and the metric of the empty launch beside it.
struct Beside {
  std::string_view recorded;
  Arm arm;
  std::string_view measured;
};
constexpr Beside kBeside[] = {{"api_record_ns", Arm::plain, "api_ns"},
                              {"api_record_ns", Arm::traced, "api_record_ns"},
                              {"launch_ns", Arm::traced, "launch_ns"}};

bool has_median(const SummaryRow& row) {
  return row.p50 && *row.p50 > 0;
}

/// A recorded launch that found its stream idle; null where there is none.
const SummaryRow* idle_launch(const Laid& laid, std::string_view metric) {
  const auto row = std::ranges::find_if(laid.measured, [&](const SummaryRow* one) {
    return one->key.arm == kRecorded && one->metric == metric &&
           one->key.name.benchmark == "recorded/launch" && one->key.name.has("stream:idle");
  });
  return row != laid.measured.end() && has_median(**row) ? *row : nullptr;
}

/// The empty launch with the usual settings, by the device's own path where it has that.
const SummaryRow* empty_launch(const Laid& laid, const Beside& beside) {
  const SummaryRow* found = nullptr;
  for (const SummaryRow* row : laid.measured) {
    const CaseKey& key = row->key;
    if (key.arm != name_of(beside.arm) || row->metric != beside.measured ||
        !key.process_config.usual() || row->status != Status::ok || !has_median(*row) ||
        key.name.benchmark != "launch/null" || !key.name.has("mode:idle"))
      continue;
    const bool own = case_on_any_device(key.name) != key.name.text();
    if (!found || own) found = row;
    if (own) break;
  }
  return found;
}

}  // namespace

std::vector<GapDeviceRow> compared_devices(std::span<const ComparedSession> sessions) {
  const std::vector<Laid> laid = laid_side_by_side(sessions);
  const std::size_t reference = reference_of(laid);
  std::vector<GapDeviceRow> rows;
  for (std::size_t i = 0; i < laid.size(); ++i)
    rows.push_back({laid[i].session->id, laid[i].device->uuid, i == reference});
  return rows;
}

void each_ratio(std::span<const ComparedSession> sessions,
                const std::function<void(const GapRatioRow&)>& put) {
  const std::vector<Laid> laid = laid_side_by_side(sessions);
  if (laid.empty()) return;
  const Laid& reference = laid[reference_of(laid)];
  const auto bases = comparable_rows(reference);
  for (const Laid& one : laid) {
    if (&one == &reference) continue;
    std::vector<std::pair<const SummaryRow*, const SummaryRow*>> pairs;
    for (const auto& [key, row] : comparable_rows(one)) {
      const auto base = bases.find(key);
      if (base != bases.end()) pairs.emplace_back(row, base->second);
    }
    for (const auto& [row, base] : pairs) put(ratio_row(one, *row, reference, *base, pairs.size()));
  }
}

std::vector<GapRecordedRow> recorded_beside_measured(std::span<const ComparedSession> sessions) {
  std::vector<Laid> recorded, measured;
  for (const ComparedSession& from : sessions) {
    const bool of_a_job = from.session->has_arm(kRecorded);
    const RowsByDevice rows(*from.rows);
    for (const DeviceFacts& device : from.session->devices) {
      if (!of_a_job && (!device.usable || !is_gpu(device) || device.simulated)) continue;
      (of_a_job ? recorded : measured)
          .push_back({from.session, &device, order_of(device), rows.of(device.uuid)});
    }
  }
  std::vector<GapRecordedRow> rows;
  for (const Laid& job : recorded) {
    if (!idle_launch_share(*job.session, job.device->uuid)) continue;
    const auto has_its_name = [&](const Laid& one) { return one.device->name == job.device->name; };
    const bool any_alike = std::ranges::any_of(measured, has_its_name);
    for (const Laid& other : measured) {
      const bool alike = has_its_name(other);
      if (any_alike && !alike) continue;
      for (const Beside& beside : kBeside) {
        const SummaryRow* const row = idle_launch(job, beside.recorded);
        const SummaryRow* const best = empty_launch(other, beside);
        if (!row || !best) continue;
        rows.push_back({.session = job.session->id,
                        .device = job.device->uuid,
                        .metric = beside.recorded,
                        .measured_session = other.session->id,
                        .key = &best->key,
                        .measured_metric = beside.measured,
                        .same_name = alike,
                        .times = *row->p50 / *best->p50});
      }
    }
  }
  return rows;
}

}  // namespace launchgap::gap
