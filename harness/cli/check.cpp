// launchgap check
#include "harness/regression/check.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "harness/cli/command.h"
#include "harness/cli/report_options.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"

namespace launchgap::cli {
namespace {

namespace rg = regression;

struct CheckCommandOptions {
  std::vector<std::string> sessions;
  std::string history, baseline, current;
  bool confirm = false, require_baseline = false, gate_spread = false, no_add = false;
  BaselineOptions baseline_options;
  ReportOutputs outputs;
};

rg::SessionFigures read_figures(const std::string& folder) {
  const SessionData session = read_session(folder);
  for (const std::string& problem : session.problems) say("launchgap: {}", problem);
  return rg::figures_of(session);
}

rg::CheckOptions check_options(const CheckCommandOptions& options) {
  rg::CheckOptions check = options.baseline_options.check_options();
  check.strictness = {options.require_baseline, options.gate_spread};
  return check;
}

ExitCode ended(const rg::Report& report, const ReportOutputs& outputs) {
  const ExitCode written = outputs.write(report);
  const ExitCode judged = report.exit_code();
  return judged == ExitCode::done ? written : judged;
}

/// People know a session by its folder.
void name_subject(rg::Report& report, const std::string& folder) {
  report.subject = folder;
  const std::filesystem::path page = std::filesystem::path(folder) / "report.html";
  std::error_code failed;
  if (std::filesystem::is_regular_file(page, failed)) report.page = page.string();
}

ExitCode check_two(const CheckCommandOptions& options) {
  const rg::SessionFigures base = read_figures(options.sessions[0]);
  const rg::SessionFigures now = read_figures(options.sessions[1]);
  rg::Report report = rg::check_two_sessions(base, now, check_options(options));
  report.base = options.sessions[0];
  name_subject(report, options.sessions[1]);
  return ended(report, options.outputs);
}

/// The history that a session is to be added to; none yet where this is the first.
std::unique_ptr<rg::History> open_history(const CheckCommandOptions& options) {
  const auto use = options.no_add ? rg::History::Use::read : rg::History::Use::write;
  return std::make_unique<rg::History>(options.history, use);
}

struct Sides {
  rg::Side baseline, current;
};

/// Before anything is judged: what is wrong with them is wrong with the command line.
std::optional<Sides> sides_of(const CheckCommandOptions& options) {
  if (!options.confirm) return std::nullopt;
  return Sides{
      rg::parse_side("--baseline", options.baseline),
      options.current.empty() ? rg::own_side() : rg::parse_side("--current", options.current)};
}

ExitCode check_history(const CheckCommandOptions& options) {
  const std::optional<Sides> sides = sides_of(options);
  const rg::CheckOptions check = check_options(options);
  const rg::SessionFigures now = read_figures(options.sessions[0]);
  const std::unique_ptr<rg::History> history = open_history(options);
  rg::Checked checked = rg::check_against_history(*history, now, check);
  name_subject(checked.report, options.sessions[0]);
  if (sides) rg::confirm(checked, sides->baseline, sides->current);
  ExitCode code = ended(checked.report, options.outputs);
  if (options.no_add || history->has(now.session_id)) return code;
  try {
    history->add(now, checked.points, checked.report.invalid);
  } catch (const Error& error) {
    say("launchgap: {}", error.what());
    if (code == ExitCode::done) code = ExitCode::failed;
  }
  return code;
}

ExitCode check(const CheckCommandOptions& options) {
  const SignalWatch watch;
  if (options.history.empty()) {
    if (options.sessions.size() != 2)
      throw UsageError("check needs two sessions, BASE and NEW, or --history FILE and NEW");
    if (options.confirm) throw UsageError("--confirm needs a history");
    return check_two(options);
  }
  if (options.sessions.size() != 1) {
    throw UsageError("with --history one session is checked, and {} were named",
                     options.sessions.size());
  }
  if (options.confirm && options.baseline.empty())
    throw UsageError(
        "--confirm compares with a build that is pinned: --baseline BIN[,NAME=VALUE...]");
  return check_history(options);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "check", "Whether a session is slower than those before it, or than one other");
  auto options = std::make_shared<CheckCommandOptions>();
  command
      ->add_option("sessions",
                   options->sessions,
                   "NEW, the folder of the session to check; without --history BASE and NEW")
      ->required();
  command->add_option("--history",
                      options->history,
                      "File with the sessions before; NEW is added after its verdict. If there is "
                      "none, it is made");
  command->add_flag("--no-add", options->no_add, "Leave the history as it is");
  command->add_flag("--confirm",
                    options->confirm,
                    "Compare what is suspect with the build of --baseline, here and now");
  command->add_option("--baseline",
                      options->baseline,
                      "With --confirm: a launchgap that stays as it is, and variables of its "
                      "environment: BIN[,NAME=VALUE...]");
  command->add_option("--current",
                      options->current,
                      "With --confirm: what is under test, written like --baseline; default: this "
                      "launchgap");
  options->baseline_options.add_options(*command);
  command->add_flag("--require-baseline",
                    options->require_baseline,
                    "What is invalid, has no baseline or cannot be told fails (exit code 3)");
  command->add_flag("--gate-spread",
                    options->gate_spread,
                    "What became erratic fails too (exit code 4), and not only what became slower");
  options->outputs.add_options(*command);
  command->footer(
      "Example: launchgap check --history nights.db results/tonight --junit check.xml\n"
      "A new driver: launchgap check --history nights.db results/tonight --across driver_version\n"
      "Exit codes: 0 nothing is slower, 4 something is, and it is confirmed; 3 the session is "
      "invalid as a whole");
  command->callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace launchgap::cli
