// A program that is not launchgap's, run to its end: Python that draws the page, a profiler.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/message.h"

namespace launchgap {

/// The file that a shell would start by this name: the first in PATH that may be executed.
std::optional<std::filesystem::path> find_program(std::string_view name);

struct ProgramRequest {
  std::vector<std::string> arguments;                        // the first is looked for in PATH
  std::map<std::string, std::string> environment;            // beside this process's own
  double limit_s = std::numeric_limits<double>::infinity();  // then it is killed
  /// How long it has to end by itself, after SIGINT, once a signal to stop was noted here.
  double grace_s = 0;
  bool answers_to_error = false;  // what it prints on standard output goes to standard error
  std::filesystem::path printed;  // if set: a new file that has all that it prints
  int input = -1;                 // the end of a pipe that it reads, closed here once it is started
};

struct ProgramOutcome {
  static constexpr int kNotFound = 127;  // as a shell has it

  ProcessEnd end;  // with kNotFound where there is no such program
  bool late = false;
};

/// It reads nothing but `input`, prints where this process does unless `printed` is set, and has a
/// group of its own, so that Ctrl-C reaches launchgap alone; and it ends with launchgap. Throws
/// Error if the system has no more processes. A caller that watches for signals asks stop_signal
/// afterwards.
ProgramOutcome run_program(const ProgramRequest& request);

/// The last 4 KiB of what a program printed into `printed`; empty if there is no such file.
std::string last_printed(const std::filesystem::path& printed);

}  // namespace launchgap
