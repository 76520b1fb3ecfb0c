// A report as Markdown, for a CI job's summary.
#pragma once

#include <cstddef>
#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// GitHub takes no longer summary.
inline constexpr std::size_t kLongestMarkdown = std::size_t{1} << 20;

/// The answer, what changed, the ten worst, what was not judged, how many false alarms to expect.
/// At most kLongestMarkdown bytes.
std::string markdown(const Report& report);

}  // namespace launchgap::regression
