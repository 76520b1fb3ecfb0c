// Code tuned for one GPU on another: what the configuration that is best on the one costs on the
// other, by the files of a tuner.
#pragma once

#include <span>
#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// Of each kernel, problem and set of parameters every ordered pair of GPUs that were tuned: the
/// time of the best configuration of the one on the other, divided by the time of the other's own
/// best. The interval is 95 %, of the logarithms of the runs; absent where they were not recorded.
/// Best is the least mean of many, so the other's own best looks a little too good, and the cost a
/// little too high: by about 4 standard errors of a mean among 20,000 configurations.
///
/// Throws Error for a file that cannot be read.
std::vector<GapTunedRow> tuned_rows(std::span<const ComparedSession> sessions);

/// A sentence for each kernel: on which GPU code that is tuned for others loses most.
std::vector<GapAnswerRow> tuned_answers(const std::vector<GapTunedRow>& rows);

}  // namespace launchgap::gap
