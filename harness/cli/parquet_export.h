// A session's tables and samples as Parquet, for DuckDB, pandas and Spark.
#pragma once

#include <filesystem>
#include <string>

#include "harness/core/errors.h"

namespace launchgap::cli {

/// Adds a session, or each of those that were put together, to the folder `output`, as
/// docs/parquet.md says. Samples go through a pipe, a run at a time, so memory does not grow with
/// their number. Throws Error where Python has no pyarrow, or could not write; then what was there
/// before is there still.
ExitCode export_parquet(const std::string& folder, const std::filesystem::path& output);

}  // namespace launchgap::cli
