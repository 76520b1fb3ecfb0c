#include <algorithm>
#include <ctime>
#include <limits>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/stop.h"
#include "harness/regression/selftest.h"

namespace launchgap::regression {
namespace {

constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostResampled = 200;

/// Valid ones of the fingerprint that the series had last, in order of time.
std::vector<rules::Night> last_nights(const History& history, const SeriesKey& key) {
  const auto last = history.last_of_fingerprints(key, kAnyTime);
  const auto latest =
      std::ranges::max_element(last, {}, [](const auto& entry) { return entry.second; });
  if (latest == last.end()) return {};
  std::vector<rules::Night> nights;
  const auto take = [&](const KeptPoint& point) {
    if (can_be_compared_with(point)) nights.push_back(point.night);
    return nights.size() >= kMostResampled;
  };
  history.before(key, {latest->first}, kAnyTime, take);
  std::ranges::reverse(nights);
  return nights;
}

/// As least_change() has it, in the metric's unit; the tick of the clock is not kept.
double least_step_of(const SeriesKey& key, double value) {
  MetricFigures figures;
  figures.key = key;
  figures.runs = {{.replicate = 0, .median = value, .cv = {}, .tail = {}}};
  return least_change(figures, 0) * value;
}

}  // namespace

NightRates rates_of_nights(const History& history) {
  NightRates found_of_all;
  for (const auto& [key, device_name] : history.series()) {
    stop_if_asked();
    const std::vector<rules::Night> nights = last_nights(history, key);
    if (why_never_judged(key.metric)) {
      ++found_of_all.without["not judged"];
      continue;
    }
    if (nights.size() < kFewestToResample) {
      ++found_of_all.without[fmt::format("fewer than {} valid sessions", kFewestToResample)];
      continue;
    }
    const auto found = resample_nights(nights,
                                       metric(key.metric).direction,
                                       least_step_of(key, nights.back().value),
                                       derive_seed(0, key.where.name.text() + key.metric));
    if (!found) {
      ++found_of_all.without["a value is 0 or negative"];
      continue;
    }
    found_of_all.rates.push_back(
        {{key, Kind::history, std::time(nullptr), found->noise, found->power},
         device_name,
         nights.size()});
  }
  return found_of_all;
}

std::vector<Rate> rates_of_pairs(const Selftest& selftest) {
  std::vector<Rate> rates;
  for (const SelftestRow& row : selftest.rows) {
    if (const auto power = row.power())
      rates.push_back({row.key, Kind::pairs, std::time(nullptr), row.noise, *power});
  }
  return rates;
}

}  // namespace launchgap::regression
