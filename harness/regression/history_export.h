// A history as rows: for people, and for programs that look for change points.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "harness/regression/history.h"

namespace launchgap::regression {

/// The last points of a series, in order of time.
std::vector<KeptPoint> last_points(const History& history, const SeriesKey& key, std::size_t count);

/// One row per session and metric, by series and in order of time, as RFC 4180: session_id, node,
/// begin_utc, device_id, device_name, arm, process_config, case, metric, unit, value, runs,
/// within_run_cv, between_run_cv, tail, modes, p99, verdict, invalid, fingerprint. Throws
/// WriteError.
void export_csv(const History& history, const std::filesystem::path& file);

}  // namespace launchgap::regression
