// Whether a library selects one algorithm for a case, or now this one and now that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// What a library's call selected for one case, over all processes of a session.
struct SelectionCounts {
  std::string device, case_name;
  std::string by;  // the call
  int selections = 0;
  int processes = 0;
  std::string algorithm;  // the most frequent one
  /// What is known of it beside its name.
  std::optional<std::int64_t> engine;
  std::string notes;
  std::optional<std::uint64_t> workspace_bytes;
  int others = 0;           // selections that have another than this one
  int others_within = 0;    // that have another than their own process has most often
  int other_processes = 0;  // whose most frequent one is another
  /// How many times as long as the most frequent one those take which are selected in its place, on
  /// average, by their medians in the same process. Absent where none is, or one has no median.
  std::optional<double> others_times;

  double flip_rate() const { return static_cast<double>(others) / selections; }
  double flip_rate_within() const { return static_cast<double>(others_within) / selections; }
};

/// In the order of device, case and call. Of what a process selected equally often, the candidate
/// that was offered first counts as its most frequent one; over all processes the algorithm that is
/// first in the alphabet.
std::vector<SelectionCounts> selection_counts(const SessionData& session);

/// One per device and call of which any two selections for a case differ.
std::vector<Finding> selection_findings(const SessionData& session);

}  // namespace launchgap
