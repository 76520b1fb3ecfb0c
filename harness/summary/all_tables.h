// Every table that launchgap writes, the one list, and every finding of a session.
#pragma once

#include <filesystem>
#include <limits>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/table.h"

namespace launchgap {

inline constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();

/// In the order in which docs list them.
const std::vector<Table>& all_tables();

/// What each table, column, metric, status and word means: tables.json, for readers that know no
/// table, the page first.
Json describe_tables();

/// Writes the tables of a use into `folder`; `details` are with those of `session`,
/// `comparison_cases` with those of `comparison`. Beside details
/// it writes tables.json, which names those that have more than `most_rows` and were cut there.
/// Returns the names of those that have no row: a header alone. Throws
/// WriteError if it cannot, and Stopped once a signal was noted.
std::vector<std::string_view> write_tables(const TableInputs& inputs,
                                           TableUse use,
                                           const std::filesystem::path& folder,
                                           std::size_t most_rows = kAllRows);

// --- All that is found in a session, from every source, in the one order ---

/// What the doctor found before, what was not measured, what a comparison with earlier sessions, a
/// recorded job and this machine's own numbers say, and what falling back to the CPU costs.
std::vector<Finding> all_findings(const TableInputs& inputs);

}  // namespace launchgap
