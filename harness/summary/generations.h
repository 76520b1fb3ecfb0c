// When GPUs were released: data/generations.csv.
#pragma once

#include <optional>
#include <string>

#include "harness/device/facts.h"

namespace launchgap {

/// Year and month of a GPU's release, "2017-06", by its name; of a model of which only another form
/// or memory size has a date, that one's; of a GPU of no table, when the first of its compute
/// capability was released. Absent where nothing says it.
std::optional<std::string> release_of(const DeviceFacts& gpu);

}  // namespace launchgap
