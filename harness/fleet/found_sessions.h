// The sessions below folders, as their session.json tell of them: nothing that they measured is
// read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/record/session_record.h"

namespace launchgap::fleet {

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

}  // namespace launchgap::fleet
