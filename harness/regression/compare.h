// `compare`: two builds, library paths, settings or cases, in fresh processes next to each other on
// the same device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/plan.h"
#include "harness/regression/report.h"
#include "harness/regression/session_figures.h"
#include "harness/rules/paired.h"
#include "harness/run/planned_session.h"

namespace launchgap::regression {

/// One side of a comparison: a build of launchgap, and the environment that it runs in.
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

struct CompareRequest {
  Side a, b;
  /// Exact names of two cases, where A measures the one and B the other; else both are empty.
  std::string a_case, b_case;
  std::size_t pairs = rules::kLeastPairs;
  /// Devices, profile, filter, seed and time-out, as of `run`. With `output` the sessions of all
  /// processes stay in this folder, which is new or empty.
  RunOptions run;
  Strictness strictness;
  double wait_s = 60;    // for a device that another session has, before each pair
  std::string progress;  // in front of what the progress line says: "comparison 3 of 400"
  /// Hears the figures of each process that measured, in order.
  std::function<void(char side, const SessionFigures&)> heard = [](char, const SessionFigures&) {};
};

/// What the two processes of a pair measure: cases of one process configuration on one device.
struct PairedWork {
  DeviceFacts device;
  ProcessConfig process_config;
  std::vector<std::string> a_cases = {}, b_cases = {};  // the same unless two cases are compared
  double seconds = 0;                                   // estimate for one process
};

/// Looks at the machine and finds out what is to be measured. The cases of a process configuration
/// are several works where their names are longer than a filter may be. Throws UsageError for what
/// names nothing, NoGpuError, Error where a device cannot be used, and Stopped.
std::vector<PairedWork> plan_pairs(const CompareRequest& request);

/// Measures pairs in the order AB BA AB BA …, each pair of every work before the next, and judges
/// every metric. A pair of which a process fails is made up for; a work ends after three such in a
/// row, or where another session keeps the device for longer than is waited, and what it has is
/// judged. Throws UsageError if the output folder is not new or empty, and
/// Stopped once a signal was noted, if the caller watches for signals: what was measured until then
/// stays in the output folder.
Report compare(const CompareRequest& request, const std::vector<PairedWork>& plan);

}  // namespace launchgap::regression
