// launchgap investigate
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/join_report.h"
#include "harness/cli/mistakes.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/device/backend.h"
#include "harness/investigate/tool_commands.h"
#include "harness/run/devices.h"
#include "harness/run/filter.h"
#include "harness/run/foreign_program.h"
#include "harness/run/planned_session.h"
#include "harness/run/process.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;
using investigate::Places;
using investigate::Subject;
using investigate::Tool;
using investigate::ToolOutcome;

struct InvestigateCommandOptions {
  std::string session, case_name, device, tool = "auto", output;
};

/// The command lines that do by hand what this command does.
std::string lines_for(Tool tool, const Subject& subject, const fs::path& folder) {
  const std::string launchgap = own_executable();
  const Places places = investigate::places_of(tool, folder);
  std::string text = fmt::format("# {}\n", investigate::product_of(tool));
  const auto add = [&](const investigate::CommandLine& command) {
    text += investigate::shell_line(command) + "\n";
  };
  add({"mkdir", "-p", folder.string()});
  add(investigate::profile_command(tool, subject, launchgap, places));
  if (tool == Tool::nsys) {
    add(investigate::export_command(places));
    add(investigate::join_command(launchgap, places));
  }
  return text;
}

/// Throws UsageError unless the tools can see what the case does.
void check_kind(const Subject& subject) {
  if (is_gpu(subject.device)) return;
  throw UsageError(
      "nsys and ncu see what GPUs do, and {} was measured on the host, whose queue "
      "records itself: launchgap run --devices host --filter '{}' --trace on",
      subject.case_name,
      exact_filter(subject.case_name));
}

/// Throws UsageError unless the GPU is here and can be used.
void check_device(const Subject& subject) {
  const MachineDevices machine = find_devices(kProbeTimeoutS);
  const auto here = std::ranges::find(machine.devices, subject.device.uuid, &DeviceFacts::uuid);
  const std::string remedy = "; --tool none prints the command lines for the machine that has it";
  if (here == machine.devices.end()) {
    throw UsageError(
        "{} ({}) is not on this machine{}", subject.device.name, subject.device.uuid, remedy);
  }
  if (!here->usable) {
    throw Error("{} ({}) cannot be used: {}{}", here->name, here->uuid, here->reason, remedy);
  }
}

/// What to end with now, where there is nothing to go on with; says what went wrong.
std::optional<ExitCode> ended_early(const ToolOutcome& outcome, const fs::path& folder) {
  if (outcome.stopped) {
    say("Stopped early; what was measured is in {}.", folder.string());
    return ExitCode::stopped_early;
  }
  if (!outcome.problem.empty()) say("launchgap: {}.", outcome.problem);
  if (!outcome.report) return ExitCode::failed;
  return std::nullopt;
}

ExitCode run_under(Tool tool,
                   const fs::path& program,
                   const Subject& subject,
                   const fs::path& folder) {
  check_device(subject);
  make_output_folder(folder);
  const std::string launchgap = own_executable();
  const Places places = investigate::places_of(tool, folder);
  const SignalWatch watch;
  const auto profile = investigate::profile_command(tool, subject, launchgap, places);
  say_line(investigate::shell_line(profile));
  const ToolOutcome profiled = investigate::run_tool(tool, program, profile, places);
  if (const auto code = ended_early(profiled, folder)) return *code;
  const ExitCode code = profiled.problem.empty() ? ExitCode::done : ExitCode::failed;
  if (tool == Tool::ncu) {
    answer("Report:  {} (ncu-ui opens it, `ncu --import` prints it)\nSession: {}\n",
           places.report.string(),
           places.session.string());
    return code;
  }
  const auto exporting = investigate::export_command(places);
  say_line(investigate::shell_line(exporting));
  const ToolOutcome exported = investigate::run_export(program, exporting, places);
  if (const auto early = ended_early(exported, folder)) {
    if (!exported.stopped) {
      say("The report is {}: export it where nsys can, then {}",
          places.report.string(),
          investigate::shell_line(investigate::join_command(launchgap, places)));
    }
    return *early;
  }
  answer("Report:  {}\nSession: {}\n", places.report.string(), places.session.string());
  const ExitCode joined = answer_join(places.exported, places.session, places.joined, "");
  return code == ExitCode::done && exported.problem.empty() ? joined : ExitCode::failed;
}

ExitCode investigate_case(const InvestigateCommandOptions& options) {
  const SessionData session = read_session(options.session);
  for (const std::string& problem : session.problems) say("launchgap: {}", problem);
  const Subject subject = investigate::find_subject(session, options.case_name, options.device);
  check_kind(subject);
  const fs::path folder = options.output.empty()
                              ? fs::path("results") / (new_session_id() + "-investigation")
                              : fs::path(options.output);
  for (const Tool tool : {Tool::nsys, Tool::ncu}) {
    if (options.tool != "auto" && options.tool != name_of(tool)) continue;
    if (const auto program = find_program(name_of(tool)))
      return run_under(tool, *program, subject, folder);
    if (options.tool == "auto") continue;
    say("launchgap: there is no {} in PATH. Where it is, this does what was asked for:",
        name_of(tool));
    answer_text(lines_for(tool, subject, folder));
    return ExitCode::failed;
  }
  if (options.tool == "auto") say("Neither nsys nor ncu is in PATH. Where they are, run:");
  answer_text(lines_for(Tool::nsys, subject, folder) + "\n" +
              lines_for(Tool::ncu, subject, folder));
  return ExitCode::done;
}

}  // namespace

void add_investigate(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "investigate", "Run a case of a session once more, under Nsight Systems or Nsight Compute");
  auto options = std::make_shared<InvestigateCommandOptions>();
  command->add_option("session", options->session, "Folder of the session that raised the question")
      ->required();
  command->add_option("case", options->case_name, "The exact name of a case, as summary.csv has it")
      ->required();
  one_of(command->add_option(
             "--tool",
             options->tool,
             "nsys: where the time of each sample goes; ncu: what a kernel does; none: print "
             "the command lines; auto: the first of these that is in PATH"),
         {"auto", "nsys", "ncu", "none"})
      ->capture_default_str();
  command->add_option("--device",
                      options->device,
                      "Of several devices that have the case: a UUID or the beginning of one, or a "
                      "GPU's index");
  command->add_option("-o,--output",
                      options->output,
                      "Folder for report and session, new or empty; default: results/<new>");
  command->footer(
      "Example: launchgap investigate results/tonight launch/null/api:driver/mode:idle --tool "
      "nsys\n"
      "Nothing of it serves as a baseline: it is measured under a tool, and says so.");
  command->callback(
      [options, &action] { action = [options] { return investigate_case(*options); }; });
}

}  // namespace launchgap::cli
