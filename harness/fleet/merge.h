// `launchgap merge`: any number of sessions as one, which refers to them. What comes out depends on
// the sessions alone: not on the order in which they are named, nor on when each was put in.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "harness/fleet/fleet_plan.h"
#include "harness/fleet/found_sessions.h"
#include "harness/record/session_record.h"

namespace launchgap::fleet {

struct MergeOptions {
  bool ended = false;  // nothing is running any more: what says that it runs was killed
  std::optional<FleetPlan> plan;
  std::map<std::string, std::string> absent;  // nodes of the plan that got no work, and why
};

/// The session.json of all together in `output`: its parts, what is missing of them, and in its
/// notes what looks odd.
///
/// Left out is: of copies of one session all but the one with the most records; of a rank that
/// began the same again what did not end, where another start did or has more; what holds published
/// values. Counted under ids of their own are sessions that claim the same id and are no copies.
/// Missing is: ranks of a job of which there is nothing; a session that has not ended; records of a
/// planned run; a device that could not be used; nodes and devices of the plan.
SessionRecord merge(const FoundSessions& found,
                    const MergeOptions& options,
                    const std::filesystem::path& output);

/// Writes it, in place of one that was put together before. Throws UsageError if the folder holds
/// anything else, and WriteError.
void write_merged(const std::filesystem::path& output, const SessionRecord& merged);

}  // namespace launchgap::fleet
