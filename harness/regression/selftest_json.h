// What `selftest` found, as JSON.
#pragma once

#include "harness/record/json.h"
#include "harness/regression/history_rates.h"
#include "harness/regression/selftest.h"

namespace launchgap::regression {

/// {"schema": "launchgap-selftest/1", "launchgap", "rows": [...], "notes": [...]}. Rates, noise and
/// changes are shares: 0.05 is 5 %. What is not known is left out.
Json to_json(const Selftest& selftest, const NightRates* nights);

}  // namespace launchgap::regression
