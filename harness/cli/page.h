// The page: C++ computes the tables, the Python package draws them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/fleet/fleet.h"
#include "harness/run/foreign_program.h"
#include "harness/summary/table.h"

namespace launchgap::cli {

/// A session with its statistics.
struct Summarised {
  SessionData session;
  std::vector<SummaryRow> rows;
  std::vector<SummaryRow> impossible;  // taken out of them
  SlowSamples slow_samples;
  std::optional<NightRows> nights;  // once it was checked against a history

  explicit Summarised(const std::filesystem::path& folder);
  TableInputs table_inputs() const {
    return {session, rows, slow_samples, nights ? &*nights : nullptr, &impossible};
  }
  Summarised(const Summarised&) = delete;  // the rows point into the session
};

/// What these sessions are beside each other: of one with a single GPU nothing.
GapRows gap_of(const std::vector<std::unique_ptr<Summarised>>& sessions);

/// Writes the tables of the comparison. Throws what write_tables() does.
void write_gap_tables(const std::vector<std::unique_ptr<Summarised>>& sessions,
                      const GapRows& gap,
                      TableUse use,
                      const std::filesystem::path& folder);

/// The Python package that draws pages and writes Parquet, beside the binary.
class PythonPackage {
 public:
  /// Throws Error if it is not beside this binary: in the package's share folder, or in the
  /// checkout above build/bin.
  PythonPackage();

  /// To run one of its modules: by LAUNCHGAP_PYTHON, the checkout's .venv, or else python3. What it
  /// needs for a while goes into `scratch`.
  ProgramRequest request(const std::string& module,
                         const std::vector<std::string>& arguments,
                         const std::filesystem::path& scratch) const;

 private:
  std::filesystem::path root_;  // holds `reports/`
};

/// Draws one page over the sessions. Throws Error that says what is missing (Python, matplotlib)
/// and what to do.
void write_page(const std::vector<std::unique_ptr<Summarised>>& sessions,
                const GapRows& gap,
                const std::filesystem::path& output);

/// What the tables of a fleet are made from, which has no samples.
class FleetTables {
 public:
  explicit FleetTables(const fleet::Fleet& fleet)
      : fleet_(fleet), slow_samples_(fleet.session, rows_) {}
  TableInputs inputs() const {
    return {fleet_.session, rows_, slow_samples_, nullptr, &rows_, nullptr, &fleet_.rows};
  }

 private:
  const fleet::Fleet& fleet_;
  const std::vector<SummaryRow> rows_;
  const SlowSamples slow_samples_;
};

/// Draws the page of a fleet. Throws as write_page() does.
void write_fleet_page(const FleetTables& tables, const std::filesystem::path& output);

/// Draws report.html into a session's folder and answers where it is. A page that cannot be drawn
/// is a message and no failure: false. Throws Stopped once a signal was noted.
bool offer_page(const std::vector<std::unique_ptr<Summarised>>& sessions,
                const std::filesystem::path& folder);

}  // namespace launchgap::cli
