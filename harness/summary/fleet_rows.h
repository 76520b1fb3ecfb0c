// Many devices beside each other, as rows of tables. harness/fleet fills them from the tables of
// sessions that were put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/stats/stats.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// A metric of a case, over the devices of one kind: those that share a name.
struct FleetMetricRow {
  std::string kind;
  CaseKey key;  // without device
  std::string metric;
  std::size_t devices = 0, nodes = 0;
  std::size_t outliers = 0;  // devices that differ from their kind
  /// Of the devices' medians; in the metric's unit.
  double min = 0, p05 = 0, q1 = 0, p50 = 0, q3 = 0, p95 = 0, max = 0;
  /// Of the variance of the logarithms; empty where the level is not to be told from the others.
  std::optional<double> host_share, device_share, run_share;
  std::string_view heading;  // of a number that a person looks for first; else empty
  std::size_t place = 0;     // of such a number, from the left
};

/// A device's value of a metric that has a heading.
struct FleetValueRow {
  std::uint32_t device, metric;  // indices
  double value;                  // the median of its run medians
  bool outlier;
};

/// A device that differs from its kind.
struct FleetOutlierRow {
  std::size_t device, metric;  // indices
  double value;                // the median of its run medians
  double ratio;                // of its run medians to those of the others
  stats::Interval interval;    // of the ratio, 95 % for all devices and metrics at once
  bool worse;
};

/// A case and metric in which a device's score is below 0.75 (harness/rules/scores.h).
struct FleetScoreRow {
  std::size_t device, metric;  // indices
  std::optional<double> relative, individual;
};

struct FleetDeviceRow {
  std::string node, device;  // its name to the scheduler, and a UUID
  std::string kind, backend;
  std::string pci_bus_id;    // empty: not known
  std::size_t slot = 0;      // on its node: GPUs in the order of PCI addresses, then the host
  std::size_t sessions = 0;  // that measured it
  std::string folder;        // of the last of these, as seen from that of this session
  std::size_t cases = 0;     // that it has results of
  std::size_t cases_failed = 0;
  std::string reason;           // why there are no results; else empty
  std::string failure;          // the first case that failed, and why
  std::optional<double> level;  // the median over its metrics of how many times worse than the
                                // median of its kind it is
  std::size_t metrics = 0;      // that were compared
  bool judged = false;          // in one of them at least there are the runs to say that it differs
  std::size_t worse = 0;        // in which it is worse than its kind
  std::optional<double> relative_score, individual_score;
  std::optional<std::size_t> place;  // among those that stand out: 1 is the worst
  std::string evidence;              // of what it stands out by
  bool simulated = false;
};

/// Cases that did not give a result, for one reason.
struct FleetFailureRow {
  std::string status, reason;
  std::string example;  // a case
  std::size_t cases = 0, devices = 0, nodes = 0;
  std::string where;  // the first nodes, by name
};

struct FleetRows {
  std::vector<FleetDeviceRow> devices;  // by node and slot
  std::vector<FleetMetricRow> metrics;  // by kind and case
  std::vector<FleetValueRow> values;
  std::vector<FleetOutlierRow> outliers;  // the worst first
  std::vector<FleetScoreRow> scores;      // the lowest first
  std::vector<FleetFailureRow> failures;  // those of most devices first
  std::vector<Finding> findings;
  std::vector<std::string> problems;  // one line each: sessions whose tables cannot be read
  std::size_t from_records = 0;       // sessions that have no table, and whose records were read
};

}  // namespace launchgap
