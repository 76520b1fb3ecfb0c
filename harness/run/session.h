// `launchgap run`: makes the processes of a planned session, and keeps everything that they
// measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/core/errors.h"
#include "harness/run/planned_session.h"

namespace launchgap {

/// What a finished session amounts to.
struct SessionResult {
  std::filesystem::path folder;
  bool stopped = false;               // by a signal
  std::vector<std::string> failures;  // one line each
  ExitCode exit_code() const;
};

/// Runs the plan. SIGINT, SIGTERM and SIGHUP stop it and keep what is there. Throws Error only if
/// the output folder cannot be made or written.
SessionResult run_session(PlannedSession session);

}  // namespace launchgap
