// The folder of a session that runs: session.json, and the records that the parent writes.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/core/plan.h"
#include "harness/record/session_record.h"
#include "harness/record/writer.h"

namespace launchgap {

class SessionFolder {
 public:
  /// Makes the folder. `record` is what session.json begins with.
  /// Throws UsageError if the folder cannot be made, or exists and is not empty.
  SessionFolder(std::filesystem::path path, SessionRecord record);

  const std::filesystem::path& path() const { return path_; }

  /// What session.json says when it is written next.
  SessionRecord& record() { return record_; }
  const SessionRecord& record() const { return record_; }

  /// Writes session.json with this `state`. Throws WriteError.
  void write(const char* state, const std::vector<DeviceFacts>& devices);
  /// The last of it: `state` cannot stay "running", or readers would take the session for one that
  /// runs. Where there is no room for all of it, that word is replaced in its place. Throws
  /// WriteError, after that, if there was no room.
  void write_last(const char* state, const std::vector<DeviceFacts>& devices);

  /// Writes the operations of its patterns, each to a file of its own. Throws WriteError.
  std::vector<std::string> keep_patterns() const;

  /// The records of one worker.
  std::filesystem::path records(const PlannedRun& run,
                                const DeviceFacts& device,
                                int attempt) const;
  /// The same, of a worker that is gone or that never was: to append to, with a `run` record if it
  /// has none. Throws WriteError.
  RecordWriter reopen_records(const PlannedRun& run, const DeviceFacts& device, int attempt) const;

 private:
  std::filesystem::path path_;
  SessionRecord record_;
};

}  // namespace launchgap
