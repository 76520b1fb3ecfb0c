// Many devices beside each other: what is the same on all, which differ, and where the variation
// lies. From the tables of the sessions that were put together, without their samples.
#pragma once

#include <cstddef>
#include <filesystem>

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
///   which all failed (fleet_places.h). The worst is the one that is the most times worse in its
///   worst metric.
///
/// It is blind to what all devices of a kind share, to a device that is slow in some runs only
/// unless these move its mean logarithm, and to a kind of one device.
Fleet read_fleet(const std::filesystem::path& folder);

}  // namespace launchgap::fleet
