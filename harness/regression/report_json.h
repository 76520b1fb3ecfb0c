// A report as one JSON document, for programs. docs/check.schema.json is its schema.
#pragma once

#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// Keys in a fixed order. What is absent, empty or no finite number has no key, except for arrays.
std::string report_json(const Report& report);

}  // namespace launchgap::regression
