// What `launchgap run` is about to do: the devices of this machine, the plan, and whether GPUs can
// be traced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/plan.h"
#include "harness/core/trace_state.h"
#include "harness/run/devices.h"

namespace launchgap {

/// How long each process that looks at the machine has to answer.
inline constexpr double kProbeTimeoutS = 60;

/// Whether there are traced runs: where it is possible, in any case, or not at all.
enum class TraceOption { automatic, on, off };
TraceOption parse_trace(std::string_view text);  // throws UsageError that lists the choices

struct RunOptions {
  std::string devices = "all";
  Profile profile = Profile::quick;
  std::string filter;  // ECMAScript expression, '-' in front negates; empty: everything
  std::optional<int> runs;
  TraceOption trace = TraceOption::automatic;
  bool observer_effect = true;  // in processes of its own, where launches are traced
  bool keep_events = false;     // of traced runs; else those around slow samples
  std::optional<std::uint64_t> seed;
  double timeout_s = kUsualTimeoutS;
  std::filesystem::path output;             // empty: results/<session id>
  std::optional<std::string> tool;          // that all of it is known to run under
  std::optional<std::string> investigates;  // the session of whose case this is to tell more
  std::vector<std::string> command_line;
  Json doctor;  // what was found of the machine before, for session.json
};

/// Whether the GPUs of a session are traced; if not, why.
struct GpuTracing {
  TraceState state = TraceState::ok;
  std::string reason;
};

/// A session that is planned and has measured nothing yet.
struct PlannedSession {
  std::string id;
  RunOptions options;
  int runs = 0;  // of each device and process configuration, unless its benchmarks say otherwise
  MachineDevices machine;
  std::optional<RankFacts> rank;     // of a process that is one of several
  std::vector<DeviceFacts> devices;  // selected, usable or not
  Plan plan;
  double record_bytes = 0;  // estimate
  GpuTracing tracing;
  std::string left_to_nightly;  // by the profile quick, in a sentence; else empty
};

/// Finds devices and cases and orders the runs. Throws UsageError for a selection or filter that is
/// wrong or matches nothing, and NoGpuError.
PlannedSession plan_session(const RunOptions& options);

/// "20261120T103455Z-783dd3": the time and a random number.
std::string new_session_id();

/// How many runs of a batch go side by side: each has a CPU of its own.
std::size_t runs_at_once();

/// "NVIDIA A100 (0)", "host".
std::string short_name(const DeviceFacts& device);

/// The plan as text, for `--dry-run`: a line per device, and the totals last. `each_run`: before
/// them a line for each run, in their order.
std::string describe_plan(const PlannedSession& session, bool each_run);
/// {"runs", "steps", "seconds", "seconds_per_run", "record_bytes", "seed"}: `seconds` counts
/// `seconds_per_run` for the start of each process, which differs from machine to machine.
Json plan_as_json(const PlannedSession& session);

}  // namespace launchgap
