// One side of a comparison: a build of launchgap, and the environment that it runs in.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/plan.h"
#include "harness/regression/session_figures.h"

namespace launchgap::regression {

struct Side {
  std::string text;               // as it was asked for, for people
  std::filesystem::path program;  // absolute
  std::string version;            // "launchgap 0.3.0 (1a2b3c4)", what it says of itself
  std::map<std::string, std::string> environment;  // beside this process's own
};

/// `BIN[,ENV=VALUE…]`; in a value `\,` is a comma. BIN without a slash is looked for in PATH.
/// `option` names where it stood, for messages. Throws UsageError: for a variable without '=', one
/// that is set twice, one that would have no effect (workers remove it, or launchgap sets it
/// itself); and for a program that is not there, may not be executed or is not launchgap. To know
/// the last it is run with `--version`. Throws Stopped once a signal was noted.
Side parse_side(std::string_view option, const std::string& text);

/// The same of this very program, without any variable.
Side own_side();

// --- One process of it ---

struct PairedProcess {
  const Side& side;
  std::string device;              // UUID
  std::vector<std::string> cases;  // exact names, of one process configuration
  Profile profile = Profile::quick;
  std::uint64_t seed = 0;
  double timeout_s = kUsualTimeoutS;
  double seconds = 0;            // estimate
  std::filesystem::path folder;  // of its session; what it prints is beside it
};

struct PairedOutcome {
  std::optional<SessionFigures> figures;  // absent if it failed as a whole
  std::string problem;  // how it ended and what it said last; empty if all went well
};

/// Runs it to its end and reads what it measured. A process of which single cases failed has
/// figures all the same. Throws Stopped once a signal was noted, when the process has put away what
/// it had; and Error if the system has no more processes.
PairedOutcome measure(const PairedProcess& process);

}  // namespace launchgap::regression
