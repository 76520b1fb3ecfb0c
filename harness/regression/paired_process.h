// One process of a comparison: `launchgap run` of a side's build, in that side's environment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/regression/session_figures.h"
#include "harness/regression/side.h"
#include "harness/run/planned_session.h"

namespace launchgap::regression {

struct PairedProcess {
  const Side& side;
  std::string device;              // UUID
  std::vector<std::string> cases;  // exact names, of one process configuration
  Profile profile = Profile::quick;
  std::uint64_t seed = 0;
  double timeout_s = 120;
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
