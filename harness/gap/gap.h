// What a newer GPU is against an older one: the rows of the tables gap_*.csv.
#pragma once

#include <span>

#include "harness/gap/gpu_columns.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// Over all devices of the sessions; nothing is averaged over cases, types or sizes. Without two
/// GPUs that share a case there are values and limits, and no answer but what is missing.
/// `each_case` and `each_ratio` look at the sessions once more, which must be there still.
GapRows generation_gap(std::span<const ComparedSession> sessions);

}  // namespace launchgap::gap
