// A tool's report joined with the session that was measured under it, answered on the console.
#pragma once

#include <filesystem>
#include <string>

#include "harness/core/errors.h"

namespace launchgap::cli {

/// Answers which part of the slowest samples moved, case by case, and writes the table of all
/// samples unless `output` is empty. Throws Error for what cannot be joined.
ExitCode answer_join(const std::filesystem::path& report,
                     const std::filesystem::path& session,
                     const std::filesystem::path& output,
                     const std::string& metric);

}  // namespace launchgap::cli
