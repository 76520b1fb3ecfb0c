// launchgap investigate, launchgap join
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/investigate/joined_report.h"
#include "harness/investigate/tool_commands.h"
#include "harness/run/devices.h"
#include "harness/run/filter.h"
#include "harness/run/foreign_program.h"
#include "harness/run/planned_session.h"
#include "harness/run/process.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;
using investigate::JoinedCase;
using investigate::JoinedReport;
using investigate::Part;
using investigate::SlowestSamples;

/// "+1.2 µs", "-0.4 µs".
std::string change(double from, double to, std::string_view unit) {
  if (to == from) return "none";
  return (to < from ? "-" : "+") + quantity(std::abs(to - from), unit);
}

/// The slowest samples beside the others: the value, the range, and each part of it.
std::string comparison_table(const JoinedCase& joined, const SlowestSamples& samples) {
  const std::string unit(unit_of(joined.metric));
  std::vector<std::vector<std::string>> rows = {{"mean of",
                                                 fmt::format("slowest {}", samples.slowest),
                                                 fmt::format("other {}", samples.others),
                                                 "difference",
                                                 "share"}};
  rows.push_back({joined.metric,
                  quantity(samples.value_slowest, unit),
                  quantity(samples.value_others, unit),
                  change(samples.value_others, samples.value_slowest, unit),
                  ""});
  rows.push_back({"the sample in the report",
                  quantity(samples.range_slowest_ns, "ns"),
                  quantity(samples.range_others_ns, "ns"),
                  change(samples.range_others_ns, samples.range_slowest_ns, "ns"),
                  ""});
  for (std::size_t i = 0; i < investigate::kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (samples.slowest_ns[i] == 0 && samples.others_ns[i] == 0) continue;
    rows.push_back({fmt::format("  {}", investigate::info_of(part).name),
                    quantity(samples.slowest_ns[i], "ns"),
                    quantity(samples.others_ns[i], "ns"),
                    change(samples.others_ns[i], samples.slowest_ns[i], "ns"),
                    samples.difference_ns() > 0
                        ? percent_text(samples.difference_ns(part) / samples.difference_ns())
                        : ""});
  }
  return table(rows);
}

std::string verdict(const SlowestSamples& samples) {
  if (!samples.moved) return wrapped(fmt::format("No part moved: {}.", samples.why_none), 0) + "\n";
  const investigate::PartInfo& part = investigate::info_of(*samples.moved);
  const std::string text = fmt::format(
      "What moved is {} ({}): {} of the difference, and the most in {} of the {} slowest samples.",
      part.name,
      part.meaning,
      percent_text(samples.difference_ns(*samples.moved) / samples.difference_ns()),
      samples.with_this,
      samples.slowest);
  return wrapped(text, 0) + "\n";
}

void answer_case(const JoinedCase& joined, const SessionData& session) {
  const DeviceFacts* const device = session.device(joined.device);
  answer("\n{}, {}: {} of {} samples are in the report\n",
         joined.name,
         device ? device->name : joined.device,
         joined.observations.size(),
         joined.keys);
  const auto samples = investigate::compare_slowest(joined.observations);
  if (!samples) {
    answer_text("No part is named: that takes ten samples.\n");
    return;
  }
  answer_text(comparison_table(joined, *samples));
  answer_text(verdict(*samples));
}

/// Answers which part of the slowest samples moved, case by case, and writes the table of all
/// samples unless `output` is empty. Throws Error for what cannot be joined.
ExitCode answer_join(const fs::path& report,
                     const fs::path& session,
                     const fs::path& output,
                     const std::string& metric) {
  if (!output.empty()) check_output_place(output);
  const SessionData data = read_session(session);
  const JoinedReport joined = investigate::join_report(report, data);
  const std::vector<JoinedCase> cases = investigate::joined_cases(joined, metric);
  for (const std::string& problem : data.problems) say("launchgap: {}", problem);
  for (const std::string& remark : joined.remarks) say("launchgap: {}", remark);
  answer(
      "{}: {} of {} samples joined by their keys\n", joined.recorder, joined.joined, joined.keys);
  for (const JoinedCase& one : cases) {
    if (!one.observations.empty()) answer_case(one, data);
  }
  if (!output.empty()) {
    const SignalWatch watch;
    investigate::write_joined(joined, cases, data.id, output);
    answer("\nTable: {}\n", output.string());
  }
  return data.problems.empty() ? ExitCode::done : ExitCode::failed;
}

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

void add_join(CLI::App& app, Action& action) {
  struct Options {
    std::string report, session, output, metric;
  };
  CLI::App* const command = app.add_subcommand(
      "join", "Lay a report of Nsight Systems beside its session: which part of a launch moved");
  auto options = std::make_shared<Options>();
  command
      ->add_option("report",
                   options->report,
                   "The report as SQLite (nsys export --type=sqlite REPORT.nsys-rep)")
      ->required();
  command
      ->add_option(
          "session", options->session, "Folder of the session that was measured under nsys")
      ->required();
  command->add_option("-o,--output", options->output, "CSV with a row for each joined sample");
  command->add_option("--metric",
                      options->metric,
                      "Whose slowest samples are compared; default: the longest time of the case");
  command->footer(
      "Example: launchgap join slow/nsys.sqlite slow/nsys-session -o slow/joined.csv\n"
      "         `launchgap investigate` records such a report, and joins it");
  command->callback([options, &action] {
    action = [options] {
      return answer_join(options->report, options->session, options->output, options->metric);
    };
  });
}

}  // namespace launchgap::cli
