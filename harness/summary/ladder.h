// One product in the idiom of each generation, beside the library's: what a GPU gives to code of
// another time, and what it loses for the lack of a unit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/summary.h"

namespace launchgap {

struct LadderRow {
  std::string device;
  long long size = 0;  // rows and columns
  std::string rung;    // or "library"
  std::string type;
  Status status = Status::ok;
  std::string reason;
  std::size_t runs = 0;
  std::optional<double> device_ns, tflops;  // medians
  std::optional<double> of_library;         // its rate by that of the library in its type
  std::optional<double> of_best;  // its rate by the highest of its size, the library's too
};

/// By device, size and rung, from the oldest on.
std::vector<LadderRow> ladder_rows(const std::vector<SummaryRow>& rows);

/// Of each device, for the largest size that two rungs have: what lacking each unit costs there.
/// Two rungs are told apart beyond 5 %. On GPUs of 2048 and more alone: of 1024 wgmma has 32
/// blocks.
std::vector<Finding> ladder_findings(const SessionData& session,
                                     const std::vector<SummaryRow>& rows);

}  // namespace launchgap
