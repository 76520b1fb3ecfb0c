// The page: C++ computes the tables, the Python package draws them.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/summary/table.h"

namespace launchgap::cli {

/// A session with its statistics.
struct Summarised {
  SessionData session;
  std::vector<SummaryRow> rows;

  explicit Summarised(const std::filesystem::path& folder);
  Tabled tabled() const { return {session, rows}; }
  Summarised(const Summarised&) = delete;  // the rows point into the session
};

/// Draws one page over the sessions. Throws Error that says what is missing (Python, matplotlib)
/// and what to do.
void write_page(const std::vector<std::unique_ptr<Summarised>>& sessions,
                const std::filesystem::path& output);

/// The few numbers per device that a person looks for first.
std::string headline_table(const Summarised& summarised);

/// The first things to do about what launches cost, and where the rest is. Empty if there are none.
std::string first_advice(const Summarised& summarised);

/// What the numbers say that the table does not, one line each: devices that differ from their
/// kind, why the traced arm is missing, who else watched. Empty if there is nothing to say.
std::string remarks(const Summarised& summarised);

}  // namespace launchgap::cli
