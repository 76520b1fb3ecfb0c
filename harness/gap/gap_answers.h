// The sentences of the gap.
#pragma once

#include <vector>

#include "harness/gap/shared_cases.h"

namespace launchgap::gap {

/// Of the two GPUs that are farthest apart in release among those that share a case: how many times
/// as fast work, memory and launches became, and how much more work a kernel has to do before its
/// launch is worth it. Each factor is of one case, that in which the newer GPU is fastest; none is
/// a mean over cases, types or sizes.
std::vector<GapAnswerRow> gain_answers(const GpuPair& pair);

/// Where the newer one gains least: over all, then of products, then of convolutions. A case is
/// chosen by what is certain of it (SharedCase::at_most), since the least of many noisy ratios
/// looks too bad.
std::vector<GapAnswerRow> worst_answers(const GpuPair& pair);

/// How many cases got slower, how many gained less than half of what the ceilings promise, and what
/// else may have made it so.
std::vector<GapAnswerRow> disappointments(const GpuPair& pair);

/// Per kind of work, type and class of shape, and of all cases together.
std::vector<GapClassRow> class_rows(const GpuPair& pair);

/// Which GPUs stand in the tables alone, since another of the same name stands for them.
std::vector<GapAnswerRow> not_compared(const std::vector<GpuColumn>& columns,
                                       const std::vector<const GpuColumn*>& compared);

}  // namespace launchgap::gap
