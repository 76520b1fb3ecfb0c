// Reports for tests of what is written of them.
#pragma once

#include <string_view>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// Throws Error for a name that is none of these:
/// - `night`: two slower, two suspect, one erratic, one faster, others same or not judged; a new
///   driver
/// - `quiet`: nothing found, rates known
/// - `strict`: `quiet`, with a metric without a baseline, which fails
/// - `erratic`: `quiet`, with an erratic metric, which fails
/// - `invalid`: invalid as a whole
/// - `empty`: nothing at all
/// - `two`: two sessions
/// - `hostile`: names with all that XML, Markdown, JSON, a terminal and GitHub give a meaning
/// - `large`: 10,000 results with long names
Report sample_report(std::string_view name);

}  // namespace launchgap::regression
