// Reads the records of one process into a session's data.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "harness/summary/session_data.h"

namespace launchgap {

/// What was read before, of the folder whose records are read.
struct RunsRead {
  std::map<std::pair<RunId, int>, std::filesystem::path> runs;  // by attempt
  /// Of several sessions together: by device, what its replicate 0 is called; and where records and
  /// events are, as seen from the folders of all of them.
  std::map<std::string, int> first_replicate;
  std::filesystem::path folder, events_folder;
  bool measured = true;  // whether what was measured is kept; runs and outcomes are in any case
};

/// Reads a file. What it lacks or has wrong becomes a problem of the session.
void read_run(SessionData& session, RunsRead& read, const std::filesystem::path& file);

}  // namespace launchgap
