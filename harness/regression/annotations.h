// A report as GitHub's workflow commands, which it shows beside a job: "::error title=…::…".
#pragma once

#include <cstddef>
#include <string>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// GitHub shows ten of a kind per step and drops the rest.
inline constexpr std::size_t kMostAnnotations = 10;

/// A line each: what fails first, then what changed with the fingerprint, then the rest of what was
/// found but faster. No more than kMostAnnotations.
std::string github_annotations(const Report& report);

}  // namespace launchgap::regression
