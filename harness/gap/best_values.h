// What each device does at best and at worst: the table by which somebody chooses.
#pragma once

#include <vector>

#include "harness/gap/gpu_columns.h"
#include "harness/summary/gap_rows.h"

namespace launchgap::gap {

/// For each device every quantity, in the order of the page; what it has not is said in words. A
/// quantity that no device has is left out. No value is a mean over cases.
std::vector<GapValueRow> best_values(const std::vector<GpuColumn>& columns);

/// What a GPU cannot run: types and benchmarks that its libraries or hardware refused, and the last
/// software that serves it (the doctor's tables).
std::vector<GapLimitRow> limits_of(const std::vector<const GpuColumn*>& gpus);

}  // namespace launchgap::gap
