// The devices of several sessions in the order of their release.
#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/core/metric.h"
#include "harness/summary/generations.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap::gap {

struct ComparedSession {
  const SessionData* session = nullptr;
  const std::vector<SummaryRow>* rows = nullptr;        // those that count
  const std::vector<SummaryRow>* impossible = nullptr;  // taken out of them
};

/// By which devices stand in order: the host's first, then by release, compute capability and name.
/// What is not known stands last.
using DeviceOrder = std::tuple<bool, std::string, CapabilityNumbers, std::string>;
DeviceOrder order_of(const DeviceFacts& device);

/// Where a column's values come from. Those of different origins are never averaged.
enum class Origin { measured, simulated, published };

/// "measured", "simulated", "published".
std::string_view name_of(Origin origin);

/// The median of a case by one metric. Compared by what it is of: the same on another device is
/// equal.
struct CaseValue {
  std::string_view family;  // of the process that measured it
  const CaseName* name = nullptr;
  const Metric* metric = nullptr;
  double value = 0;
  const SummaryRow* row = nullptr;  // null: one of very many published values

  std::strong_ordering operator<=>(const CaseValue& other) const {
    return std::tie(family, *name, metric->key) <=>
           std::tie(other.family, *other.name, other.metric->key);
  }
  bool operator==(const CaseValue& other) const { return *this <=> other == 0; }
};

struct GpuColumn {
  ComparedSession from;
  const DeviceFacts* device = nullptr;
  DeviceOrder order;
  std::string title;     // each once
  std::string released;  // "2017-06"; empty: not known
  Origin origin = Origin::measured;
  bool host = false;
  std::map<std::string, double> power_w;  // by case: the median that was read while it was measured
  std::vector<const SummaryRow*> rows;    // plain runs of usual processes, and published values
  std::vector<CaseValue> values;          // above 0, of cases that are ok; in order
  std::vector<const CaseName*> too_fast;  // whose rate cannot be, each once

  /// The title, with the origin behind it where that is no measurement.
  std::string title_and_origin() const;
};

/// "A100-SXM4-80GB" of "NVIDIA A100-SXM4-80GB": what every board is called says nothing.
std::string short_name(std::string_view name);

/// Every usable device that has a row, in order. Of a GPU of no table the compute capability stands
/// for the release.
std::vector<GpuColumn> gpu_columns(std::span<const ComparedSession> sessions);

/// Of GPUs of one name, clock and origin the first stands for all; of published ones, of one CUDA
/// and driver.
std::vector<const GpuColumn*> one_of_each(const std::vector<GpuColumn>& columns);

}  // namespace launchgap::gap
