// What a session says on the console, in text.
#pragma once

#include <string>

#include "harness/cli/page.h"

namespace launchgap::cli {

/// The few numbers per device that a person looks for first.
std::string headline_table(const Summarised& summarised);

/// What benchmarks answer that is read in any case, then the first things to do and where the rest
/// is. Empty if there is neither.
std::string first_findings(const Summarised& summarised);

/// What the numbers say that the table does not, one line each: devices that differ from their
/// kind, why traced runs are missing, who else watched. Empty if there is nothing to say.
std::string remarks(const Summarised& summarised);

}  // namespace launchgap::cli
