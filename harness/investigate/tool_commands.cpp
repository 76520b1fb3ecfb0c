#include "harness/investigate/tool_commands.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/benchmark.h"
#include "harness/record/fields.h"
#include "harness/run/devices.h"
#include "harness/run/filter.h"
#include "harness/run/foreign_program.h"
#include "harness/run/rank.h"

namespace launchgap::investigate {
namespace {

/// launchgap itself, as the tool starts it.
CommandLine run_command(Tool tool,
                        const Subject& subject,
                        const std::string& launchgap,
                        const Places& places) {
  CommandLine command = {launchgap,
                         "run",
                         "--devices",
                         subject.device.uuid,
                         "--filter",
                         exact_filter(subject.case_name),
                         "--runs",
                         "1",
                         "--seed",
                         std::to_string(subject.seed),
                         "--profile",
                         std::string(name_of(subject.profile)),
                         "--trace",
                         "off",
                         "--under",
                         std::string(name_of(tool)),
                         "--investigates",
                         subject.session_id,
                         "--no-report",
                         "-o",
                         places.session.string()};
  // It replays each kernel some tens of times, with the memory restored in between.
  if (tool == Tool::ncu) command.insert(command.end() - 2, {"--timeout", "1800"});
  return command;
}

/// Its range is that around all blocks of the case: it captures the first of its name and no more.
/// Without the last three it would kill what it watches, or record each kernel of a graph.
CommandLine nsys_command(const Places& places) {
  return {"nsys",
          "profile",
          "--trace=cuda,nvtx",
          "--sample=none",
          "--cpuctxsw=none",
          "--capture-range=nvtx",
          "--nvtx-capture=blocks@launchgap",  // range@domain
          "--capture-range-end=stop",
          "--kill=none",
          "--cuda-graph-trace=graph",
          "--output=" + places.output.string()};
}

CommandLine ncu_command(const Places& places) {
  return {"ncu",
          "--nvtx",
          "--nvtx-include",
          "launchgap@measure/",  // domain@range: the opposite of nsys; a slash for push/pop ranges
          "--launch-count",
          "10",
          "--target-processes",
          "all",
          "--set",
          "full",
          "--export",
          places.output.string()};
}

}  // namespace

std::string_view name_of(Tool tool) {
  return tool == Tool::nsys ? "nsys" : "ncu";
}

std::string_view product_of(Tool tool) {
  return tool == Tool::nsys ? "Nsight Systems" : "Nsight Compute";
}

Places places_of(Tool tool, const std::filesystem::path& folder) {
  const std::string name(name_of(tool));
  return {.session = folder / (name + "-session"),
          .output = folder / name,
          .report = folder / (name + (tool == Tool::nsys ? ".nsys-rep" : ".ncu-rep")),
          .exported = folder / "nsys.sqlite",
          .joined = folder / "joined.csv"};
}

CommandLine profile_command(Tool tool,
                            const Subject& subject,
                            const std::string& launchgap,
                            const Places& places) {
  CommandLine command = tool == Tool::nsys ? nsys_command(places) : ncu_command(places);
  std::ranges::copy(run_command(tool, subject, launchgap, places), std::back_inserter(command));
  return command;
}

CommandLine export_command(const Places& places) {
  return {"nsys",
          "export",
          "--type=sqlite",
          "--output=" + places.exported.string(),
          places.report.string()};
}

CommandLine join_command(const std::string& launchgap, const Places& places) {
  return {launchgap,
          "join",
          places.exported.string(),
          places.session.string(),
          "-o",
          places.joined.string()};
}

std::string shell_line(const CommandLine& command) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& argument : command) {
    if (!line.empty()) line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
    line += '\'';
  }
  return line;
}

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

namespace {

/// How a session was measured, from its session.json.
struct Settings {
  std::optional<std::uint64_t> seed;
  std::optional<Profile> profile;

  static void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("profile", self.profile);
  }
};

Settings settings_of(const SessionData& session) {
  constexpr std::size_t kLongest = std::size_t{1} << 28;
  const std::filesystem::path file = session.folder / "session.json";
  try {
    return fields_from_json<Settings>(parse_json(InputFile(file).text(kLongest)));
  } catch (const Error& error) {
    throw Error("{}: {}", file.string(), error.what());
  }
}

[[noreturn]] void refuse(const SessionData& session, const std::string& case_name) {
  constexpr std::size_t kShown = 4, kLongestName = 300;
  std::set<std::string> names;
  for (const auto& [key, data] : session.cases) names.insert(key.name.text());
  const std::string asked = case_name.substr(0, kLongestName);
  // A name without its axes means all that begin so.
  std::vector<std::string> nearest;
  for (const NearName& near : by_nearness(asked, {names.begin(), names.end()})) {
    if (nearest.size() < kShown) nearest.push_back(printable(near.name));
  }
  throw UsageError(
      nearest.empty()
          ? fmt::format("{} has no cases", session.folder.string())
          : fmt::format("{} has no case '{}'. The nearest: {}. summary.csv has all of them",
                        session.folder.string(),
                        printable(case_name),
                        fmt::join(nearest, ", ")));
}

/// The device that is meant, of those that have the case.
DeviceFacts choose_device(const std::vector<DeviceFacts>& having,
                          const std::string& case_name,
                          const std::string& wanted) {
  const std::vector<DeviceFacts> chosen =
      wanted.empty() ? having : select_devices({having, {}}, wanted);
  if (chosen.size() == 1) return chosen.front();
  std::string names;
  for (const DeviceFacts& device : having)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", device.uuid, device.name);
  throw UsageError(
      "{} devices have {}: choose one by --device, of {}", chosen.size(), case_name, names);
}

}  // namespace

Subject find_subject(const SessionData& session,
                     const std::string& case_name,
                     const std::string& device) {
  std::vector<DeviceFacts> having;
  bool known = false;
  for (const auto& [key, data] : session.cases) {
    if (key.name.text() != case_name) continue;
    known = true;
    const DeviceFacts* const facts = session.device(key.device);
    if (facts && std::ranges::find(having, facts->uuid, &DeviceFacts::uuid) == having.end())
      having.push_back(*facts);
  }
  if (!known) refuse(session, case_name);
  const Benchmark& benchmark = benchmark_of(CaseName::parse(case_name));
  if (benchmark.recorded) {
    throw UsageError(
        "{} is what somebody recorded, and nothing can run it again: `launchgap export "
        "{} --format chrome-trace -o TRACE.json.gz` shows its events",
        case_name,
        session.folder.string());
  }
  if (having.empty())
    throw Error(
        "{}: session.json does not have the device of {}", session.folder.string(), case_name);
  const Settings settings = settings_of(session);
  if (!settings.seed || !settings.profile) {
    throw Error(
        "{}: session.json lacks the seed or the profile, so the case cannot be run as "
        "it was",
        session.folder.string());
  }
  return {.session_id = session.id,
          .case_name = case_name,
          .device = choose_device(having, case_name, device),
          .profile = *settings.profile,
          .seed = *settings.seed};
}

}  // namespace launchgap::investigate
