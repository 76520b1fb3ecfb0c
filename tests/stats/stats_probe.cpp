// Computes what one function of harness/stats or harness/rules makes of many data sets, for tests
// in Python.
//
// On standard input, again and again: a line {"compute": NAME, "sizes": [n, …], "times": m}, then m
// times the values of groups of these sizes as doubles in the machine's order. On standard output a
// line of JSON for each of the m; null: not defined.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "harness/rules/outliers.h"
#include "harness/stats/modes.h"
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

Json describe_effects(const Groups& groups) {
  const RandomEffects effects = random_effects(groups);
  return {{"within_sd", json(effects.within_sd)},
          {"between_sd", json(effects.between_sd)},
          {"icc", json(effects.icc)}};
}

Json count_modes(const Groups& groups) {
  return json(modes(groups[0]));
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
    {"seconds of random_effects", seconds_of(describe_effects)},
    {"lognormal_cv", [](const Groups& groups) { return json(lognormal_cv(groups[0][0])); }},
    {"dip", [](const Groups& groups) { return json(dip(sorted(groups[0])).value); }},
    {"dip_limit", [](const Groups& groups) { return json(dip_limit(groups[0].size())); }},
    {"modes", count_modes},
    {"seconds of modes", seconds_of(count_modes)},
    {"difference", [](const Groups& groups) { return json(difference(groups[0], groups[1])); }},
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
