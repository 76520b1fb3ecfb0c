// launchgap run
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/console.h"
#include "harness/cli/described_command.h"
#include "harness/cli/json_output.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/page.h"
#include "harness/cli/what_to_measure.h"
#include "harness/core/errors.h"
#include "harness/core/pattern.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/doctor/doctor.h"
#include "harness/import/step_pattern.h"
#include "harness/measure/pattern_list.h"
#include "harness/run/session.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Pattern read(const fs::path& place, std::string_view step) {
  if (place.extension() == ".csv" && !fs::is_directory(place)) {
    if (!step.empty()) throw Error("{}: a table of operations has no steps", place.string());
    return read_pattern(place);
  }
  return recording::pattern_of_session(place, recording::WantedStep::parse(step));
}

Pattern find(const std::string& text) {
  for (const Pattern& shipped : shipped_patterns()) {
    if (shipped.origin.name == text) return shipped;
  }
  if (is_there(text)) return read(text, "");
  // Either may have colons: the longest path that is there.
  for (std::size_t colon = text.rfind(':'); colon != std::string::npos && colon > 0;
       colon = text.rfind(':', colon - 1)) {
    if (is_there(text.substr(0, colon)))
      return read(text.substr(0, colon), std::string_view(text).substr(colon + 1));
  }
  std::vector<std::string> names;
  for (const Pattern& shipped : shipped_patterns()) names.push_back(shipped.origin.name);
  throw Error("'{}' is no session, no file and no pattern that ships{}: those are {}",
              printable(text, 200),
              did_you_mean(text, names),
              list_text(names));
}

/// What lasts as long as it did has an own time to compare with.
void stretch(Pattern& pattern, double factor) {
  if (factor == 1) return;
  for (PatternOperation& one : pattern.operations) {
    const bool kernel = one.action == PatternAction::kernel || one.action == PatternAction::ahead;
    if (kernel)
      one.device_ns = std::llround(
          std::min(static_cast<double>(one.device_ns) * factor, 2.0 * kLongestPatternNs));
  }
  pattern.origin.kernel_factor = factor;
  pattern.origin.name = pattern_name(pattern.origin.name, fmt::format(".x{:g}", factor));
  check_pattern(pattern);
}

/// "resnet50_training", "step.csv", "SESSION", "SESSION:12", "SESSION:NAME#3": one that ships, a
/// table of operations, or a step of a session that `import` or `record` made. Kernels last
/// `kernel_factor` times as long as they did. Throws UsageError that names what is wrong and what
/// there is.
std::vector<Pattern> patterns_of(const std::vector<std::string>& texts, double kernel_factor) {
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    try {
      patterns.push_back(find(text));
      stretch(patterns.back(), kernel_factor);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      throw UsageError("--pattern: {}", error.what());
    }
  }
  return patterns;
}

struct RunCommandOptions {
  WhatToMeasure what;
  std::optional<int> runs;
  std::string trace = "auto";
  std::string output;
  bool dry_run = false;
  bool verbose = false;
  JsonOutput json;
  bool no_page = false;
  bool no_observer_effect = false;
  bool keep_events = false;
  std::vector<std::string> patterns;
  double kernel_time = 1;
  std::optional<std::string> tool, investigates;
};

/// Statistics, tables and page of a session that has just run. The samples are safe on disk by now,
/// so a page that cannot be drawn is a message and not a failure. False if the tables could not be
/// written. Throws Stopped once a signal was noted.
bool conclude(const std::filesystem::path& folder,
              const std::string& left_out,
              bool with_page,
              const JsonOutput& json) {
  const SignalWatch watch;
  bool written = true;
  std::vector<std::unique_ptr<Summarised>> sessions;
  sessions.push_back(std::make_unique<Summarised>(folder));
  const Summarised& summarised = *sessions.front();
  for (const std::string& problem : summarised.session.problems) say("launchgap: {}", problem);
  try {
    write_tables(summarised.table_inputs(), TableUse::session, folder);
  } catch (const WriteError& error) {
    say("launchgap: {}", error.what());
    written = false;
  }
  answer_text(headline_table(summarised));
  answer_text(remarks(summarised));
  answer_text(first_findings(summarised));
  if (!left_out.empty()) answer_text("\n" + wrapped(left_out, 0) + "\n");
  if (written) answer("\nTables: {}\n", (folder / "summary.csv").string());
  const bool page = with_page && offer_page(sessions, folder);
  json.write(session_as_json(summarised, page ? folder / "report.html" : ""));
  return written;
}

/// Looks at the machine before it is measured. What distorts is said now; all of it goes into the
/// session. It takes a fraction of a second, and nothing is run on the GPUs.
Json examine_machine(bool with_gpus) {
  doctor::Diagnosis diagnosis = doctor::diagnose_machine({});
  for (const Finding& finding : diagnosis.findings) {
    if (!with_gpus || finding.severity == Severity::note) continue;
    say("{}: {} [launchgap doctor --explain {}]",
        name_of(finding.severity),
        finding.sentence,
        finding.code);
  }
  return std::move(diagnosis.json);
}

ExitCode run(const RunCommandOptions& options, const std::vector<std::string>& command_line) {
  RunOptions request = options.what.run_options();
  if (!options.patterns.empty()) {
    use_patterns(patterns_of(options.patterns, options.kernel_time));
    // Who asks for a pattern asks for nothing else, unless a filter says so.
    if (request.filter.empty()) request.filter = "^launch/pattern/";
  } else if (options.kernel_time != 1) {
    throw UsageError("--kernel-time goes with --pattern: it stretches the pattern's kernels");
  }
  request.trace = parse_trace(options.trace);
  request.observer_effect = !options.no_observer_effect;
  request.keep_events = options.keep_events;
  request.runs = options.runs;
  request.output = options.output;
  request.tool = options.tool;
  request.investigates = options.investigates;
  if (options.tool) {
    if (request.trace == TraceOption::on)
      throw UsageError("--trace on and --under exclude each other: only one can have CUPTI");
    request.trace = TraceOption::off;
  }
  request.command_line = command_line;
  if (options.verbose && !options.dry_run)
    throw UsageError("--verbose goes with --dry-run: it lists the plan");
  options.json.begin();
  PlannedSession session = plan_session(request);
  if (options.dry_run) {
    if (options.json.asked()) {
      options.json.write(plan_as_json(session));
    } else {
      answer_text(describe_plan(session, options.verbose));
    }
    return ExitCode::done;
  }
  session.options.doctor = examine_machine(options.what.devices != "host");
  if (options.what.devices != "host") {
    for (const std::string& note : session.machine.notes) say_line(note);
  }
  const std::string left_out = session.left_to_nightly;
  const SessionResult result = run_session(std::move(session));
  bool written = false;
  try {
    written = conclude(result.folder, left_out, !options.no_page, options.json);
  } catch (const Stopped&) {
    say("Stopped before the tables and the page were there; `launchgap report {}` makes them.",
        result.folder.string());
    return ExitCode::stopped_early;
  }
  if (result.stopped) say("Stopped early; what was measured is in {}.", result.folder.string());
  const ExitCode code = result.exit_code();
  return code == ExitCode::done && !written ? ExitCode::failed : code;
}

}  // namespace

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  CLI::App* const command =
      app.add_subcommand("run", "Measure devices, each run in a process of its own");
  auto options = std::make_shared<RunCommandOptions>();
  options->what.add_options(*command);
  command
      ->add_option(
          "--runs",
          options->runs,
          "Runs of each device and process configuration, in place of the profile's. Those "
          "with launch/null are traced as often, others a third as often, once at least")
      ->check(whole_number(1, 10000));
  show_values(command->add_option(
                  "--trace",
                  options->trace,
                  "Traced runs beside the plain ones, to take launches apart: auto (if it is "
                  "possible), on (a case that cannot be traced fails), off"),
              {"auto", "on", "off"})
      ->capture_default_str();
  command->add_flag("--no-observer-effect",
                    options->no_observer_effect,
                    "Leave out the processes that show what tracing itself costs: for launch/null "
                    "that is four runs in six");
  command->add_flag("--keep-events",
                    options->keep_events,
                    "Keep all events of traced runs, for `launchgap export --format chrome-trace`; "
                    "else those around each case's ten slowest samples");
  command
      ->add_option("--pattern",
                   options->patterns,
                   "Do a recorded step again, and measure nothing else unless --filter is given: a "
                   "session of `import` or `record` (the step of median length, or the one that "
                   "follows the colon), a table of operations, or the name of one that ships; may "
                   "be given for each")
      ->type_name("SESSION[:STEP]");
  command
      ->add_option("--kernel-time",
                   options->kernel_time,
                   "The pattern's kernels last so many times as long as they did")
      ->check(number_between(0.001, 1000))
      ->capture_default_str();
  command->add_option("-o,--output",
                      options->output,
                      "Folder of the session, new or empty; default: results/<session>");
  command->add_flag("--dry-run",
                    options->dry_run,
                    "Show how many runs, how long and how large, and measure nothing");
  command->add_flag("-v,--verbose", options->verbose, "With --dry-run: each run of the plan too");
  options->json.add_option(*command, "What was found; with --dry-run the plan's time and size");
  command->add_flag("--no-report", options->no_page, "Leave out report.html");
  one_of(command->add_option(
             "--under",
             options->tool,
             "The profiler to assume where the environment does not show it: "
             "nothing is traced, no kernel waits for the host, and results are marked"),
         {"nsys", "ncu", "compute-sanitizer"});
  command->add_option("--investigates",
                      options->investigates,
                      "The id of a session, which session.json then names; `launchgap investigate` "
                      "sets it");
  command->footer(
      "Example: launchgap run --devices gpu,host --profile nightly --filter 'launch|matmul.*fp32' "
      "-o results/tonight\n"
      "One case: launchgap run --filter '^launch/null/.*mode:idle$'");
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return run(*options, command_line); };
  });
}

}  // namespace launchgap::cli
