// Starts somebody's program with liblaunchgap_record.so in it, and collects what that wrote.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/injected/raw_recording.h"
#include "harness/injected/settings.h"
#include "harness/record/session_record.h"

namespace launchgap::cli {

/// One start of the program.
struct RecordedStart {
  int exit_code = 0;        // the program's own, 128 + signal, or a shell's 126 and 127
  int signal = 0;           // that ended it; 0: none did
  std::string not_started;  // why; empty if it was started
  double wall_s = 0;
  std::vector<std::filesystem::path> files;  // raw recordings, by process
  std::vector<long> still_running;           // processes that are recorded on: not among the files
  std::string no_recorder;                   // why no process of it was recorded
};

/// All starts of a program.
struct RecordedStarts {
  std::vector<std::filesystem::path> files;  // raw recordings, of the level that was asked for
  std::vector<RecordingCost> costs;          // by level, where they were measured
  int exit_code = 0;                         // of the last start
  std::string problem;                       // why there were no more; empty if there were all
  bool still_running = false;                // a process of it is recorded on, in its folder
};

/// The folder of raw recordings beside a session's, while there is no session: what a recording
/// that was killed leaves can be imported.
class RawFolder {
 public:
  /// Makes it. Throws UsageError if it is there already, or cannot be made.
  explicit RawFolder(const std::filesystem::path& session);
  RawFolder(const RawFolder&) = delete;
  RawFolder& operator=(const RawFolder&) = delete;
  /// Removes it, unless it was kept.
  ~RawFolder();

  void keep() { kept_ = true; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

/// Starts the program once, with the raw recordings of its processes in a new folder within
/// `folder`. Throws Error if the system has no more processes or files, or nothing can be written.
RecordedStart start_recorded(const std::vector<std::string>& command,
                             injected::Settings settings,
                             const std::filesystem::path& folder);
/// The same without the library.
RecordedStart start_plain(const std::vector<std::string>& command);

/// That processes of a start are recorded on, and what to do when they have ended.
std::string still_running_text(const RecordedStart& started, const std::filesystem::path& folder);

/// What a raw recording begins with; nothing if it cannot be read.
std::optional<injected::RawHeader> raw_header(const std::filesystem::path& file);

/// The library beside this program. Throws Error if it is not there.
std::filesystem::path record_library();

/// What the environment or the program's file has against recording, in a sentence; empty if
/// nothing.
std::string why_not_recorded(const std::vector<std::string>& command);

// --- What recording a program costs it: starts with and without, in turns ---

/// Starts the program `rounds` times without recording and at each of `levels` (the names of
/// TraceLevel, from launches on), in another order each time; ends at the first start that fails.
/// Where none is recorded, only how long it runs is written by the same library.
RecordedStarts measure_recording_costs(const std::vector<std::string>& command,
                                       const injected::Settings& settings,
                                       int rounds,
                                       const std::filesystem::path& folder,
                                       const std::vector<std::string>& levels);

/// A line for each level; empty where there are none.
std::string cost_text(const std::vector<RecordingCost>& costs);

}  // namespace launchgap::cli
