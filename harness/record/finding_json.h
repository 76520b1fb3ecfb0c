// Findings as JSON, in answers and in session.json, and back.
#pragma once

#include "harness/core/finding.h"
#include "harness/record/json.h"

namespace launchgap {

/// Evidence is a string of words, or an object with `name`, `value`, `unit` and, where there is an
/// interval, `low` and `high`.
Json to_json(const Evidence& evidence);
Json to_json(const Finding& finding);

/// Throws Error that names a field that is missing or of another type. What older sessions lack is
/// left as it is by default.
Finding finding_from_json(const Json& json);

}  // namespace launchgap
