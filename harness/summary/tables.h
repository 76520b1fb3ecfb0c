// The tables behind the page, beyond devices, runs and summary: `launchgap export` writes them too.
// docs/record-schema.md lists their columns.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// Writes, into `folder`:
///   quantiles.csv   distributions, per run
///   sequence.csv    blocks in the order of time: median, p99 and largest
///   telemetry.csv   device and host between blocks; counters as their change over the block
///   variation.csv   coefficients of variation by level, with intervals
///   odd_devices.csv devices that differ from their kind
///   observer.csv    what tracing adds to the host clock's metrics
///   parts.csv       where the time of a traced launch goes
///   flag_check.csv  the trace against what the host itself saw
///   kernels.csv     kernels by name and grid
///   memory.csv      allocations by kind, pool and size
///   traces.csv      state and counts of each traced run and case
///   sentences.csv   one sentence per device
///   metrics.json    what each metric, column and telemetry quantity means
/// Throws Error if it cannot.
void write_detail_tables(const SessionData& session,
                         const std::vector<SummaryRow>& rows,
                         const std::filesystem::path& folder);

}  // namespace launchgap
