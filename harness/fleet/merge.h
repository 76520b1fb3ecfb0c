// `launchgap merge`: any number of sessions as one, which refers to them. What comes out depends on
// the sessions alone: not on the order in which they are named, nor on when each was put in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/fleet/fleet_plan.h"
#include "harness/record/session_record.h"

namespace launchgap::fleet {

/// A session as its session.json tells of it: nothing that it measured is read.
struct FoundSession {
  std::filesystem::path folder;  // absolute, without links
  SessionRecord record;
  std::uintmax_t record_bytes = 0;         // in its records files
  std::vector<std::string> records_files;  // their names, sorted
  std::vector<std::string> unended_files;  // of these, of a session that ended: without their `end`
  std::int64_t written_s = 0;              // session.json, by the file system's clock; Unix time
};

struct FoundSessions {
  std::vector<FoundSession> sessions;  // by folder
  std::vector<std::string> problems;   // one line each: what is there and cannot be read
};

/// All sessions in these folders and below, each once; of a session that is put together itself
/// those that it refers to. A session.json that cannot be read is tried again for a second, since
/// file systems that several machines share may show part of it. Throws UsageError for a folder
/// that is none.
FoundSessions find_sessions(const std::vector<std::string>& folders);

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
