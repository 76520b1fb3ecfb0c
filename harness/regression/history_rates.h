// What the nights of a history say of the rule that judges them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/regression/history.h"
#include "harness/regression/selftest.h"

namespace launchgap::regression {

/// A metric of a history, and how often the rule of nights is wrong about it.
struct NightRate {
  Rate rate;
  std::string device_name;
  std::size_t nights = 0;
};

struct NightRates {
  std::vector<NightRate> rates;
  std::map<std::string, std::size_t> without;  // how many metrics have none, by the reason
};

/// Of every metric with enough valid nights of the fingerprint that it had last; see
/// resampling.h. Takes some 0.1 s each. Throws Stopped once a signal was noted.
NightRates rates_of_nights(const History& history);

/// What `selftest` found by resampling processes, to be kept in a history.
std::vector<Rate> rates_of_pairs(const Selftest& selftest);

/// What `selftest` found, as JSON:
/// {"schema": "launchgap-selftest/1", "launchgap", "rows": [...], "notes": [...]}. Rates, noise and
/// changes are shares: 0.05 is 5 %. What is not known is left out.
Json to_json(const Selftest& selftest, const NightRates* nights);

}  // namespace launchgap::regression
