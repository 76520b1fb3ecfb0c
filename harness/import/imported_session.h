// A session made of recordings: one run for each process and GPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/errors.h"
#include "harness/record/session_record.h"

namespace launchgap::recording {

/// No file of those that may be empty has anything.
class NothingRecorded : public Error {
 public:
  explicit NothingRecorded(const std::string& why) : Error(why) {}
};

struct ImportRequest {
  std::vector<std::filesystem::path> files;
  std::filesystem::path output;       // new or empty
  std::string step = "ProfilerStep";  // of the ranges that are steps
  std::vector<std::string> command_line;
  std::optional<HostFacts> host;        // where it was recorded, if that is here
  std::vector<RecordingCost> costs;     // what recording itself costs, where that was measured
  bool skips_empty = false;             // a file without calls is a remark, and no error
  std::vector<std::string> benchmarks;  // of launchgap: what a table of published values may name
};

/// What the sessions of all imports begin with: `kind` begins the id, and `from` is in place of a
/// node's name.
SessionRecord session_of_import(const ImportRequest& request,
                                std::string_view kind,
                                std::string_view from);

/// Reads all files, and then writes session.json and records. Returns what a reader should know,
/// one line each. Throws Error that names the file which cannot be read, and UsageError for a place
/// that cannot be written to; nothing is left there then.
std::vector<std::string> import_recordings(const ImportRequest& request);

}  // namespace launchgap::recording
