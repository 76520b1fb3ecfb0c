// What is known of GPUs by their names, and when they were released: data/generations.csv and
// data/gpu_launches.csv.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/csv_table.h"
#include "harness/core/gpu_name.h"
#include "harness/device/facts.h"

namespace launchgap {

/// A row of data/generations.csv.
struct Generation {
  std::string gpu;
  BoardName board;
  std::string capability;  // "9.0"
  std::string month;       // of its release; empty where it is not known
  double multiprocessors = 0, boost_mhz = 0, bandwidth_gbs = 0, cache_bytes = 0;
  std::string source;

  /// Whether the value of a column is from a source: "a.json; recalled: l2_mb" names those that
  /// are not.
  bool has_source(std::string_view column) const;
};
const std::vector<Generation>& generations();

/// A number of a table. Throws Error if it is not above 0.
double positive(const CsvTable& table, std::size_t row, std::string_view column);

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
