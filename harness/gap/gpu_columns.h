// The devices of several sessions in the order of their release.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap::gap {

struct ComparedSession {
  const SessionData* session = nullptr;
  const std::vector<SummaryRow>* rows = nullptr;        // those that count
  const std::vector<SummaryRow>* impossible = nullptr;  // taken out of them
};

/// Where a column's values come from. Those of different origins are never averaged.
enum class Origin { measured, simulated, published };

/// "measured", "simulated", "published".
std::string_view name_of(Origin origin);

struct GpuColumn {
  ComparedSession from;
  const DeviceFacts* device = nullptr;
  std::string title;     // each once
  std::string released;  // "2017-06"; empty: not known
  Origin origin = Origin::measured;
  bool host = false;
  std::map<std::string, double> power_w;  // by case: the median that was read while it was measured
  std::vector<const SummaryRow*> rows;    // plain runs of usual processes, and published values

  /// The title, with the origin behind it where that is no measurement.
  std::string title_and_origin() const;
};

/// "A100-SXM4-80GB" of "NVIDIA A100-SXM4-80GB": what every board is called says nothing.
std::string short_name(std::string_view name);

/// Every usable device that has a row, the host's first, then by release, compute capability and
/// name. Of a GPU of no table the compute capability stands for the release.
std::vector<GpuColumn> gpu_columns(std::span<const ComparedSession> sessions);

/// Of GPUs of one name, clock and origin the first stands for all.
std::vector<const GpuColumn*> one_of_each(const std::vector<GpuColumn>& columns);

}  // namespace launchgap::gap
