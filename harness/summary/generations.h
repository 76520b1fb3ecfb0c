// When GPUs were released: data/generations.csv and data/gpu_launches.csv.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "harness/device/facts.h"

namespace launchgap {

/// Major and minor: as a number 10.0 and 10.10 could not be told from 10.1.
using CapabilityNumbers = std::pair<int, int>;

/// Of "9.0" (9, 0). Absent where it is not known.
std::optional<CapabilityNumbers> capability_numbers(const DeviceFacts& gpu);

struct Release {
  std::string month;     // "2017-06"
  bool by_name = false;  // else only the compute capability tells
};

/// When a GPU was released, by its name; of a model of which only another form or memory size has a
/// date, that one's. Of a GPU of no table, when the first of its compute capability was; of a
/// capability of no table, the last of the nearest older one. Absent where nothing says it.
std::optional<Release> release_of(const DeviceFacts& gpu);

}  // namespace launchgap
