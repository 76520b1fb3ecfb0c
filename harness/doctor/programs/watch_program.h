// Starts a user's program and watches what it does with the GPU, without changing the program.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/doctor/programs/program_facts.h"

namespace launchgap::doctor {

struct WatchRequest {
  std::vector<std::string> command;  // looked for in PATH, as by a shell
  /// The processes that NVML lists as computing, by their ids on this machine; may be empty. Asked
  /// for at most four times a second.
  std::function<std::set<pid_t>()> computing;
  std::map<std::string, std::string> environment = {};  // of the program, beside this process's own
  bool traces_loader = true;
  /// Whether enough is known of the program; then it is left alone until its end.
  std::function<bool()> enough = {};
};

struct WatchResult {
  /// What the caller exits with: the program's own exit code, 128 + signal, and as from a shell 127
  /// for a command that is not found and 126 for one that cannot be executed.
  int exit_code = 0;
  std::string not_started;  // why, printable; empty if it was started
  ProgramFacts facts;
};

/// Starts the program with this process's standard input, output and error and waits for its end;
/// only then anything should be printed. Signals that are sent to this process are handed on, and
/// those of the terminal reach the program by themselves. Where the loader is traced, the program's
/// environment gets LD_DEBUG and LD_DEBUG_OUTPUT, unless one of them is set: the loader's account
/// goes to a folder of its own, which is gone at the end unless processes of the program still run.
/// For the loader's sake the program's descriptors 3 to 9 are /dev/null where they were closed, and
/// one above is the loader's. To be called on the only thread that takes signals. Throws Error if
/// the system has no more processes or files.
WatchResult watch_program(const WatchRequest& request, const SystemFiles& system);

}  // namespace launchgap::doctor
