// `launchgap run`: plans a session, runs its worker processes, and keeps everything that they
// measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/run/devices.h"

namespace launchgap {

/// Whether there is a traced arm: where it is possible, in any case, or not at all.
enum class Tracing { automatic, on, off };
Tracing parse_tracing(std::string_view text);  // throws UsageError that lists the choices

struct RunOptions {
  std::string devices = "all";
  Profile profile = Profile::quick;
  std::string filter;  // ECMAScript expression, '-' in front negates; empty: everything
  std::optional<int> replicates;
  Tracing tracing = Tracing::automatic;
  std::optional<std::uint64_t> seed;
  double case_timeout_s = 120;
  std::filesystem::path output;  // empty: results/<session id>
  std::vector<std::string> command_line;
  Json doctor;  // what was found of the machine before, for session.json
};

/// A session that is planned and has measured nothing yet.
struct PlannedSession {
  std::string id;
  RunOptions options;
  int replicates = 0;
  MachineDevices machine;
  std::vector<DeviceFacts> devices;  // selected, usable or not
  Plan plan;
  double record_bytes = 0;  // estimate
  Json tracing;             // what of it there is on GPUs, for session.json
};

/// Finds devices and cases and orders the runs. Throws UsageError for a selection or filter that is
/// wrong or matches nothing, and NoGpuError.
PlannedSession plan_session(const RunOptions& options);

/// What a finished session amounts to.
struct SessionResult {
  std::filesystem::path folder;
  bool stopped = false;               // by a signal
  std::vector<std::string> failures;  // one line each
  ExitCode exit_code() const;
};

/// Runs the plan. SIGINT and SIGTERM stop it and keep what is there. Throws Error only if the
/// output folder cannot be made or written.
SessionResult run_session(PlannedSession session);

/// The plan as text, for `--dry-run`.
std::string describe_plan(const PlannedSession& session);
/// {"runs", "steps", "seconds", "seconds_per_run", "record_bytes", "seed"}: `seconds` counts
/// `seconds_per_run` for the start of each process, which differs from machine to machine.
Json plan_as_json(const PlannedSession& session);

}  // namespace launchgap
