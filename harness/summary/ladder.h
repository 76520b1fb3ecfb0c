// One product, and one convolution, in the idiom of each generation, beside the library's: what a
// GPU gives to code of another time, and what it loses for the lack of a unit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/summary.h"

namespace launchgap {

struct LadderRow {
  std::string device;
  std::string benchmark;  // matmul/ladder or convolution/ladder
  std::string shape;      // as the axis `shape` of products and convolutions has it
  double operations = 0;  // of one, as its shape says
  std::string rung;       // or "library"
  std::string type;
  Status status = Status::ok;
  std::string reason;
  std::size_t runs = 0;
  std::optional<double> device_ns, tflops;  // medians
  std::vector<double> run_ns, run_tflops;   // of each run
  std::optional<double> of_library;         // its rate by that of the library in its type
  std::optional<double> of_best;  // its rate by the highest of its shape, the library's too
};

/// By device, benchmark, shape (the least work first) and rung, from the oldest on.
std::vector<LadderRow> ladder_rows(const std::vector<SummaryRow>& rows);

/// Of each device and benchmark, for the largest shape that two rungs have: what lacking each unit
/// costs there, as surely as the runs tell, by ratio.h; of fewer than three by their medians, told
/// apart beyond 5 %. On GPUs of 16e9 operations and more in a
/// product (2048 x 2048 x 2048 has 17e9), and of 3e9 in a convolution, alone: of smaller ones the
/// larger tiles make fewer blocks than a GPU has multiprocessors.
std::vector<Finding> ladder_findings(const SessionData& session,
                                     const std::vector<SummaryRow>& rows);

}  // namespace launchgap
