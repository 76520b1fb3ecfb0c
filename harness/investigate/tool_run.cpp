#include "harness/investigate/tool_run.h"

#include <fmt/format.h>

#include "harness/core/stop.h"
#include "harness/run/foreign_program.h"
#include "harness/run/rank.h"

namespace launchgap::investigate {
namespace {

namespace fs = std::filesystem;

/// What a tool needs to put its report away.
constexpr double kGraceS = 30;

ProgramOutcome run(const fs::path& program, CommandLine command) {
  command.front() = program.string();
  ProgramRequest request;
  request.environment = alone_environment();
  request.arguments = std::move(command);
  request.grace_s = kGraceS;
  request.answers_to_error = true;
  return run_program(request);
}

bool is_there(const fs::path& file) {
  std::error_code failed;
  return fs::is_regular_file(file, failed) && fs::file_size(file, failed) > 0 && !failed;
}

/// Why a tool that ended well has no report.
std::string_view usual_reason(Tool tool) {
  return tool == Tool::nsys ? "its capture range never came, or what it captured was empty"
                            : "no kernel ran in its range, or it may not read the GPU's counters "
                              "(ERR_NVGPUCTRPERM: https://developer.nvidia.com/ERR_NVGPUCTRPERM)";
}

}  // namespace

ToolOutcome run_tool(Tool tool,
                     const fs::path& program,
                     const CommandLine& command,
                     const Places& places) {
  const ProgramOutcome ran = run(program, command);
  ToolOutcome outcome;
  outcome.stopped = stop_signal != 0;
  outcome.report = is_there(places.report);
  const bool measured = is_there(places.session / "session.json");
  if (outcome.stopped) return outcome;
  const std::string ended = fmt::format("{} {}", name_of(tool), ran.end.text());
  if (ran.end.exit_code == ProgramOutcome::kNotFound && !measured) {
    outcome.problem = fmt::format("{} cannot be executed", program.string());
  } else if (!measured) {
    outcome.problem = fmt::format(
        "{}, and launchgap measured nothing under it: what it said stands above", ended);
  } else if (!outcome.report) {
    outcome.problem =
        fmt::format("{} and wrote no {}: {}. What launchgap measured under it is in {}",
                    ended,
                    places.report.string(),
                    ran.end.clean() ? usual_reason(tool) : "what it said stands above",
                    places.session.string());
  } else if (!ran.end.clean()) {
    outcome.problem =
        fmt::format("{}: it, or the run that it watched, failed and said why above", ended);
  }
  return outcome;
}

ToolOutcome run_export(const fs::path& program, const CommandLine& command, const Places& places) {
  const ProgramOutcome ran = run(program, command);
  ToolOutcome outcome;
  outcome.stopped = stop_signal != 0;
  outcome.report = is_there(places.exported);
  if (!outcome.stopped && (!outcome.report || !ran.end.clean())) {
    outcome.problem =
        fmt::format("`nsys export` {}{}: what it said stands above",
                    ran.end.text(),
                    outcome.report ? "" : " and wrote no " + places.exported.string());
  }
  return outcome;
}

}  // namespace launchgap::investigate
