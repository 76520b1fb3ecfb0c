// What a library computes a case with, and whether it selects one algorithm for it, or now this one
// and now that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

// --- What a library computed each case with, night after night ---

/// Of each case the different ones in its processes. Where a library does not tell (cuBLAS), they
/// are the kernels of the same case in traced processes, by name and grid: "ampere_sgemm_128x64_tn
/// 16x8x1", several of one process joined by " + ". A case of which neither is known has none.
std::map<CaseKey, std::set<std::string>> algorithms_of_cases(const SessionData& session);

/// How many waves of blocks a case takes on its device, as its method says: 2.1 of "cuBLASLt 13.1
/// cublasLtMatmul, …, 2.10 waves, …". Absent where it names none, or where another library did the
/// work.
std::optional<double> waves_of(std::string_view method);

}  // namespace launchgap
