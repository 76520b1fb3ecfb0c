// Many devices beside each other: what is the same on all, which differ, and where the variation
// lies. From the tables of the sessions that were put together, without their samples.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/record/schema.h"
#include "harness/summary/fleet_rows.h"
#include "harness/summary/session_data.h"

namespace launchgap::fleet {

/// From so many devices on a page has no row per device.
inline constexpr std::size_t kManyDevices = 20;

struct Fleet {
  SessionData session;  // its facts (read_session_facts())
  FleetRows rows;
};

/// Reads the tables of all sessions that are together in `folder` and count, two at once. A
/// session's own folder is a fleet of one session. Time and memory are linear in the rows. What
/// cannot be read is named in `rows.problems`. Throws what read_session_facts() does, and Stopped
/// once a signal was noted.
///
/// What is compared, and how:
///
/// - Devices of one name are a kind. Of each metric of plain runs a device's value is the median of
///   its run medians, of all its sessions.
/// - A device differs where rules::deviations() says so, simultaneously for all devices and metrics
///   of its kind; a device with fewer than three runs differs nowhere.
/// - Variance is split by stats::nested_effects(), of run medians within devices within nodes.
/// - Scores are those of harness/rules/scores.h: of a device over its metrics of device time
///   (`device_ns`); of a case for each of its times. The last session is the one that began last.
/// - A device stands out that is worse than its kind in a metric, whose score is below 0.75, or on
///   which all failed (place_devices()). The worst is the one that is the most times worse in its
///   worst metric.
///
/// It is blind to what all devices of a kind share, to a device that is slow in some runs only
/// unless these move its mean logarithm, and to a kind of one device.
Fleet read_fleet(const std::filesystem::path& folder);

// --- What its figures say, in sentences ---

/// Nodes of which all devices of a kind are worse than those of other nodes: there the host is to
/// be looked at first. Devices that stand out otherwise, the worst ten by name. Where none does:
/// how much that says. Needs everything else of `rows`.
std::vector<Finding> fleet_findings(const FleetRows& rows);

// --- Which devices of a fleet stand out, the worst first, and by what ---

/// How many times worse than the others of its kind a device is; below 1 it is better.
double times_worse(const FleetOutlierRow& row);

/// Gives those that stand out their place and their evidence: a device on which all failed; one
/// that is worse than its kind in a metric, by the worst of them; one whose score is below 0.75,
/// its relative score only where that is far below most of its kind too. Needs everything else of
/// the devices, and `outliers` with the worst first.
void place_devices(FleetRows& rows);

// --- What a session that is part of it has measured, in little memory ---

/// A row of summary.csv, or what of it devices are compared by.
struct PartRow {
  std::string device;  // UUID
  std::string arm, process_config, case_name, metric;
  Status status = Status::ok;
  std::string reason;
  double p50 = 0;                   // not finite where there is no result
  double time = 0;                  // of all its samples: their number times their mean
  std::vector<double> run_medians;  // positive and finite
};

struct PartTable {
  std::vector<PartRow> rows;  // without those whose rate cannot be
  bool from_records = false;
  std::string problem;  // why the table was not used, or, without rows, why nothing was read
};

/// The rows of a session's summary.csv. Where the session has not `ended`, or the table is not
/// there, is torn, or cannot be read, the records are read in its place, and `problem` says why
/// unless the table is just not there. Never throws Error: what cannot be read either way is the
/// problem.
PartTable read_part_table(const std::filesystem::path& session, bool ended);

}  // namespace launchgap::fleet
