#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/core/stop.h"
#include "harness/regression/check.h"

namespace launchgap::regression {
namespace {

std::set<SeriesKey> suspects_of(const Report& report) {
  std::set<SeriesKey> suspects;
  for (const Result& result : report.results) {
    if (result.verdict == Verdict::suspect && result.key.where.arm == name_of(Arm::plain))
      suspects.insert(result.key);
  }
  return suspects;
}

/// As the session was measured: how many samples a case has depends on it.
Profile profile_of(const Checked& checked, const SeriesKey& key) {
  const auto point = std::ranges::find(checked.points, key, &Point::key);
  if (point == checked.points.end()) return Profile::quick;
  const auto found = point->fingerprint.find("profile");
  return found == point->fingerprint.end() ? Profile::quick : parse_profile(found->second);
}

/// Of a plan, the cases that are suspect.
std::vector<PairedWork> only(const std::set<SeriesKey>& suspects, std::vector<PairedWork> plan) {
  for (PairedWork& work : plan) {
    std::erase_if(work.a_cases, [&](const std::string& name) {
      return std::ranges::none_of(suspects, [&](const SeriesKey& key) {
        return key.where.device == work.device.uuid &&
               key.where.process_config == work.process_config && key.where.name.text() == name;
      });
    });
    work.b_cases = work.a_cases;
  }
  std::erase_if(plan, [](const PairedWork& work) { return work.a_cases.empty(); });
  return plan;
}

void take(const Result& compared, const Side& baseline, Result& suspect, Checked& checked) {
  const std::string found =
      fmt::format("{} in {} pairs with {}", change_text(compared), compared.runs, baseline.text);
  if (compared.verdict != Verdict::slower) {
    suspect.reason += fmt::format(
        "; not confirmed: {}{}", found, compared.reason.empty() ? "" : ", " + compared.reason);
    return;
  }
  suspect.verdict = Verdict::slower;
  suspect.reason += fmt::format("; confirmed: {}", found);
  const auto point = std::ranges::find(checked.points, suspect.key, &Point::key);
  if (point != checked.points.end()) point->verdict = Verdict::slower;
}

}  // namespace

void confirm(Checked& checked, const Side& baseline, const Side& current) {
  const std::set<SeriesKey> suspects = suspects_of(checked.report);
  if (suspects.empty()) return;
  std::set<std::string> devices;
  for (const SeriesKey& key : suspects) devices.insert(key.where.device);
  CompareRequest request;
  request.a = baseline;
  request.b = current;
  request.run.devices = fmt::to_string(fmt::join(devices, ","));
  request.progress = "confirming";
  try {
    request.run.profile = profile_of(checked, *suspects.begin());
    const Report compared = compare(request, only(suspects, plan_pairs(request)));
    for (Result& result : checked.report.results) {
      if (!suspects.contains(result.key)) continue;
      const auto found = std::ranges::find(compared.results, result.key, &Result::key);
      if (found != compared.results.end()) {
        take(*found, baseline, result, checked);
      } else {
        result.reason += "; not confirmed: this machine cannot measure it now";
      }
    }
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    checked.report.notes.push_back(fmt::format(
        "What is suspect could not be compared with {}: {}", baseline.text, error.what()));
  }
}

}  // namespace launchgap::regression
