// Computes what one function of harness/stats or harness/rules makes of many data sets, for tests
// in Python.
//
// On standard input, again and again: a line {"compute": NAME, "sizes": [n, …], "times": m}, then m
// times the values of groups of these sizes as doubles in the machine's order. On standard output a
// line of JSON for each of the m; null: not defined.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "harness/rules/nights.h"
#include "harness/rules/outliers.h"
#include "harness/rules/paired.h"
#include "harness/rules/ratio.h"
#include "harness/rules/two_sessions.h"
#include "harness/stats/modes.h"
#include "harness/stats/padding_gains.h"
#include "harness/stats/random_effects.h"
#include "harness/stats/stats.h"

namespace launchgap::stats {
namespace {

using Json = nlohmann::json;
using Groups = std::vector<std::vector<double>>;

Json json(double value) {
  return value;
}

Json json(int value) {
  return value;
}

Json json(const Interval& interval) {
  return {interval.low, interval.high};
}

Json json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"interval", json(estimate.interval)}};
}

template <class Value>
Json json(const std::optional<Value>& value) {
  return value ? json(*value) : Json(nullptr);
}

Json json(const std::vector<rules::Deviation>& deviations) {
  Json out = Json::array();
  for (const rules::Deviation& deviation : deviations) {
    out.push_back({{"ratio", json(deviation.ratio)},
                   {"interval", json(deviation.interval)},
                   {"deviates", deviation.deviates}});
  }
  return out;
}

std::vector<double> sorted(std::vector<double> values) {
  std::ranges::sort(values);
  return values;
}

Json describe(const Groups& groups) {
  const std::vector<double>& in_order = groups[0];
  const std::vector<double> sorted = stats::sorted(in_order);
  Json out;
  for (const double p : {0.0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0})
    out["quantiles"].push_back(json(quantile(sorted, p)));
  std::vector<std::int64_t> whole;
  for (const double value : in_order)
    whole.push_back(static_cast<std::int64_t>(std::clamp(value, -9e15, 9e15)));
  for (const double p : {0.0, 0.3, 0.5, 0.99, 1.0}) {
    std::vector<double> values = in_order;
    out["in_place"].push_back(json(quantile_in_place(std::span(values), p)));
    out["in_place_of_whole"].push_back(json(quantile_in_place(std::span(whole), p)));
  }
  out["median"] = json(median(in_order));
  out["mean"] = json(mean(in_order));
  out["sd"] = json(standard_deviation(in_order));
  out["mad"] = json(median_absolute_deviation(sorted));
  out["outlier_share"] = json(outlier_share(sorted));
  out["lag1"] = json(lag1_autocorrelation(in_order));
  out["median_interval"] = json(median_interval(sorted));
  return out;
}

/// The first group has how many devices each host has; the others are the devices' values.
Json describe_nested_effects(const Groups& groups) {
  std::vector<Groups> hosts;
  std::size_t next = 1;
  for (const double devices : groups[0]) {
    Groups& host = hosts.emplace_back();
    for (int i = 0; i < static_cast<int>(devices); ++i) host.push_back(groups.at(next++));
  }
  const NestedEffects effects = nested_effects(hosts);
  return {
      {"host", json(effects.host)}, {"device", json(effects.device)}, {"run", json(effects.run)}};
}

Json describe_effects(const Groups& groups) {
  const RandomEffects effects = random_effects(groups);
  return {{"within_sd", json(effects.within_sd)},
          {"between_sd", json(effects.between_sd)},
          {"icc", json(effects.icc)}};
}

Json count_modes(const Groups& groups) {
  return json(modes(groups[0]));
}

/// Of sizes 64, 72, 80 …; a group has the times of one.
Json describe_padding(const Groups& groups) {
  std::vector<SizeTimes> series;
  for (const std::vector<double>& times : groups)
    series.push_back({64 + 8.0 * static_cast<double>(series.size()), times});
  Json out = Json::array();
  for (const PaddingGain& gain : padding_gains(series)) {
    out.push_back({{"pad_to", gain.pad_to},
                   {"gain", gain.gain},
                   {"interval", json(gain.interval)},
                   {"judged", gain.judged},
                   {"cliff", gain.cliff}});
  }
  return out;
}

Json describe_trend(const Groups& groups) {
  return {{"slope", stats::theil_sen_slope(groups[0])},
          {"p", stats::mann_kendall_rise_p(groups[0])},
          {"rank_sum_p", stats::rank_sum_p(groups[0], groups[1])}};
}

Json describe_two_levels(const Groups& groups) {
  const auto levels = rules::two_levels(groups[0]);
  if (!levels) return nullptr;
  return {levels->lower, levels->upper, levels->deviation};
}

/// The logarithms of the second group's values to the first's, as the last look and as one of more.
Json describe_pairs(const Groups& groups) {
  std::vector<double> log_ratios;
  for (std::size_t i = 0; i < groups[0].size(); ++i)
    log_ratios.push_back(std::log(groups[1][i] / groups[0][i]));
  const rules::PairedRule rule(24, 1, rules::kPairedShare);
  Json out = Json::array();
  for (const bool ended : {false, true}) {
    const rules::PairedVerdict found = rule.judge(log_ratios, ended);
    out.push_back({{"verdict", name_of(found.verdict)},
                   {"reason", found.reason},
                   {"decided", found.decided},
                   {"pairs", found.pairs},
                   {"interval", json(found.interval)}});
  }
  return out;
}

/// Of each session a group of medians, and one that is made CVs, tails and p99s.
Json describe_two_sessions(const Groups& groups) {
  const auto session = [&](std::size_t first) {
    rules::SessionProcesses made{.medians = groups[first]};
    for (const double value : groups[first + 1]) {
      made.cvs.push_back(std::abs(value - 1'900) / 10'000);
      made.tails.push_back(1 + value / 4'000);
      made.p99s.push_back(1.5 * value);
    }
    made.within_run_cv = median(made.cvs);
    made.p99 = median(made.p99s);
    return made;
  };
  const rules::SessionProcesses before = session(0), now = session(2);
  const rules::SpreadVerdict spread = rules::judge_spread(before, now);
  Json out = {{"steadiness", name_of(spread.steadiness)}, {"reason", spread.reason}};
  for (const double sign : {1.0, -1.0}) {
    const auto level = rules::judge_level(before, now, sign, 0.03);
    if (!level) continue;
    out["levels"].push_back({{"verdict", name_of(level->verdict)},
                             {"reason", level->reason},
                             {"change", level->change},
                             {"interval", json(level->interval)}});
    out["tail"] = json(rules::judge_tail(before, now, level->change));
  }
  return out;
}

/// The group's values one after the other, a day apart, each judged by those before it.
Json describe_nights(const Groups& groups) {
  constexpr std::int64_t kDayS = 86'400;
  std::vector<rules::Night> earlier;
  Json out = Json::array();
  for (const double value : groups[0]) {
    const auto day = static_cast<std::int64_t>(earlier.size() + 1);
    // Of the spread, what the digits of the value are.
    rules::Night night{.begin_s = kDayS * day - (day % 11 == 0 ? 70'000 : 0), .value = value};
    night.spread = {0.005 + std::fmod(value, 7) / 200,
                    std::fmod(value, 5) / 100,
                    1.1 + std::fmod(value, 3) / 4,
                    1};
    const rules::NightJudgement found =
        rules::judge_night(earlier, night, Direction::lower_is_better, 5);
    out.push_back({name_of(found.verdict),
                   found.reason,
                   found.compared_with,
                   found.hit,
                   found.hits_in_a_row,
                   found.level_since_s,
                   name_of(found.steadiness),
                   found.steadiness_reason,
                   found.since_s.value_or(-1),
                   json(found.baseline),
                   json(found.change),
                   json(found.z),
                   found.low,
                   found.high,
                   json(found.anchor)});
    rules::remember(found, night);
    earlier.push_back(night);
  }
  return out;
}

Json describe_ratios(const Groups& groups) {
  const auto exact = rules::ratio(groups[0], groups[1]);
  const auto pooled = rules::pooled_ratio(groups[0], groups[1]);
  const rules::Ratio claimed = rules::ratio_of(groups[0], groups[1]);
  const rules::Speedup speed =
      rules::speedup(*median(groups[1]) / *median(groups[0]), groups[1], groups[0], 30);
  return {json(exact),
          pooled ? json(pooled->interval) : Json(nullptr),
          static_cast<int>(claimed.verdict),
          json(claimed.value),
          json(claimed.interval),
          json(speed.interval),
          json(speed.certain),
          name_of(speed.verdict())};
}

/// Instead of what a function makes of data, the seconds that it takes.
std::function<Json(const Groups&)> seconds_of(std::function<Json(const Groups&)> function) {
  return [function = std::move(function)](const Groups& groups) -> Json {
    const auto begin = std::chrono::steady_clock::now();
    function(groups);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
}

const std::map<std::string, std::function<Json(const Groups&)>> kFunctions = {
    {"describe", describe},
    {"random_effects", describe_effects},
    {"nested_effects", describe_nested_effects},
    {"seconds of random_effects", seconds_of(describe_effects)},
    {"lognormal_cv", [](const Groups& groups) { return json(lognormal_cv(groups[0][0])); }},
    {"dip", [](const Groups& groups) { return json(dip(sorted(groups[0])).value); }},
    {"dip_limit", [](const Groups& groups) { return json(dip_limit(groups[0].size())); }},
    {"modes", count_modes},
    {"seconds of modes", seconds_of(count_modes)},
    {"difference", [](const Groups& groups) { return json(difference(groups[0], groups[1])); }},
    {"padding_gains", describe_padding},
    {"trend", describe_trend},
    {"two_levels", describe_two_levels},
    {"pairs", describe_pairs},
    {"two_sessions", describe_two_sessions},
    {"nights", describe_nights},
    {"ratios", describe_ratios},
    {"deviations", [](const Groups& groups) { return json(rules::deviations(groups)); }},
};

}  // namespace
}  // namespace launchgap::stats

int main() {
  using launchgap::stats::Json;
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    const auto& function = launchgap::stats::kFunctions.at(request.at("compute"));
    launchgap::stats::Groups groups;
    for (const std::size_t size : request.at("sizes")) groups.emplace_back(size);
    for (int i = 0; i < request.at("times"); ++i) {
      for (std::vector<double>& group : groups) {
        std::cin.read(reinterpret_cast<char*>(group.data()),
                      static_cast<std::streamsize>(group.size() * sizeof(double)));
      }
      if (!std::cin) throw std::runtime_error("fewer values than announced");
      std::cout << function(groups).dump() << '\n';
    }
  }
}
