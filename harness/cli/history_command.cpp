// launchgap history
#include <algorithm>
#include <ctime>
#include <fnmatch.h>
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/report_options.h"
#include "harness/core/clock.h"
#include "harness/core/csv_table.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/regression/check.h"
#include "harness/regression/history.h"

namespace launchgap::cli {
namespace {

namespace rg = regression;

struct HistoryCommandOptions {
  std::string file;
  std::vector<std::string> sessions;
  std::string device = "*", case_name = "*", metric = "*";  // patterns
  std::string since, before, reason, output;
  std::size_t last = 10;
  bool dry_run = false;
  BaselineOptions baseline_options;
};

/// Adds sessions in order of time, so that each is judged by those before it.
ExitCode add(const HistoryCommandOptions& options) {
  const SignalWatch watch;
  const rg::CheckOptions check = options.baseline_options.check_options();
  std::vector<rg::SessionFigures> sessions;
  for (const std::string& folder : options.sessions) {
    const SessionData session = read_session(folder);
    for (const std::string& problem : session.problems) say("launchgap: {}", problem);
    sessions.push_back(rg::figures_of(session));
    stop_if_asked();
  }
  std::ranges::stable_sort(sessions, {}, &rg::SessionFigures::begin_utc);
  rg::History history(options.file, rg::History::Use::write);
  for (const rg::SessionFigures& session : sessions) {
    stop_if_asked();
    if (history.has(session.session_id)) {
      answer("{}: in it already\n", session.session_id);
      continue;
    }
    const rg::Checked checked = rg::check_against_history(history, session, check);
    history.add(session, checked.points, checked.report.invalid);
    answer("{}: added, {}{}\n",
           session.session_id,
           counted(checked.points.size(), "metric"),
           checked.report.invalid.empty() ? "" : "; it does not count: " + checked.report.invalid);
  }
  return ExitCode::done;
}

ExitCode list(const HistoryCommandOptions& options) {
  const rg::History history(options.file, rg::History::Use::read);
  std::vector<std::vector<std::string>> rows = {{"session", "began", "node", "metrics", "valid"}};
  for (const rg::KeptSession& session : history.sessions()) {
    rows.push_back({session.session_id,
                    utc_text(session.begin_s),
                    session.node,
                    std::to_string(session.points),
                    session.invalid.empty() ? "yes" : "no: " + session.invalid});
  }
  answer_text(rows.size() == 1 ? "It has no sessions.\n" : table(rows));
  for (const rg::AcceptedLevel& level : history.accepted()) {
    answer("Accepted on {}: {} {} {} since {}{}\n",
           utc_text(level.accepted_s),
           level.device_id,
           level.case_name,
           level.metric,
           utc_text(level.since_s),
           level.reason.empty() ? "" : ": " + level.reason);
  }
  return ExitCode::done;
}

rg::AcceptedLevel pattern_of(const HistoryCommandOptions& options) {
  rg::AcceptedLevel pattern;
  pattern.device_id = options.device;
  pattern.case_name = options.case_name;
  pattern.metric = options.metric;
  return pattern;
}

ExitCode show(const HistoryCommandOptions& options) {
  const rg::History history(options.file, rg::History::Use::read);
  const rg::AcceptedLevel pattern = pattern_of(options);
  std::size_t shown = 0;
  for (const auto& [key, device_name] : history.series()) {
    if (!pattern.covers(key)) continue;
    stop_if_asked();
    answer("{}{}  {}  {} ({}{})\n",
           shown++ ? "\n" : "",
           key.where.name.text(),
           key.metric,
           device_name,
           key.where.device,
           key.where.process_config.usual() ? "" : ", " + key.where.process_config.text());
    std::vector<std::vector<std::string>> rows = {
        {"session", "began", "value", "runs", "verdict", "fingerprint", "remark"}};
    for (const rg::KeptPoint& point : rg::last_points(history, key, options.last)) {
      rows.push_back({point.session_id,
                      utc_text(point.night.begin_s),
                      quantity(point.night.value, unit_of(key.metric)),
                      std::to_string(point.runs),
                      std::string(name_of(point.verdict)),
                      fmt::format("#{}", point.fingerprint),
                      point.invalid});
    }
    answer_text(table(rows));
  }
  if (shown == 0) throw UsageError("no series of it fits --device, --case and --metric");
  return ExitCode::done;
}

ExitCode accept(const HistoryCommandOptions& options) {
  rg::History history(options.file, rg::History::Use::write);
  rg::AcceptedLevel level = pattern_of(options);
  const auto series = history.series();
  if (std::ranges::none_of(series, [&](const auto& entry) { return level.covers(entry.first); }))
    throw UsageError("no series of it fits --device, --case and --metric");
  const auto sessions = history.sessions();
  const auto named = std::ranges::find(sessions, options.since, &rg::KeptSession::session_id);
  level.since_s = named == sessions.end() ? rg::parse_time(options.since) : named->begin_s;
  level.accepted_s = std::time(nullptr);
  if (level.since_s > level.accepted_s)
    throw UsageError("--since {} lies in the future", options.since);
  level.reason = options.reason;
  history.accept(level);
  answer(
      "Metrics of {} series are compared with sessions since {} from now on.\n",
      std::ranges::count_if(series, [&](const auto& entry) { return level.covers(entry.first); }),
      utc_text(level.since_s));
  return ExitCode::done;
}

ExitCode prune(const HistoryCommandOptions& options) {
  const std::int64_t before_s = rg::parse_time(options.before);
  if (options.dry_run) {
    const auto sessions = rg::History(options.file, rg::History::Use::read).sessions();
    answer("{} of {} sessions began before {}.\n",
           std::ranges::count_if(sessions,
                                 [&](const auto& session) { return session.begin_s < before_s; }),
           sessions.size(),
           utc_text(before_s));
    return ExitCode::done;
  }
  rg::History history(options.file, rg::History::Use::write);
  answer("{} removed.\n", counted(history.prune(before_s), "session"));
  return ExitCode::done;
}

ExitCode export_points(const HistoryCommandOptions& options) {
  const SignalWatch watch;
  const rg::History history(options.file, rg::History::Use::read);
  rg::export_csv(history, options.output);
  answer("{}\n", options.output);
  return ExitCode::done;
}

void add_patterns(CLI::App& command, HistoryCommandOptions& options) {
  command.add_option("--device", options.device, "Its UUID; * and ? as in names of files")
      ->capture_default_str();
  command.add_option("--case", options.case_name, "Name of the case, likewise")
      ->capture_default_str();
  command.add_option("--metric", options.metric, "Likewise")->capture_default_str();
}

}  // namespace

void add_history(CLI::App& app, Action& action) {
  CLI::App* const command =
      app.add_subcommand("history", "The sessions before, with which `check` compares");
  command->require_subcommand(1);
  // Those below it have the same.
  command->footer(
      "Example: launchgap history add nights.db results/2026-11-*\n"
      "         launchgap history accept nights.db --case 'launch/*' --since 2026-11-20 --reason "
      "'driver 580'");
  auto options = std::make_shared<HistoryCommandOptions>();
  const auto make = [&](const char* name,
                        const char* meaning,
                        ExitCode (*perform)(const HistoryCommandOptions&)) {
    CLI::App* const sub = command->add_subcommand(name, meaning);
    sub->add_option("file", options->file, "The history")->required();
    sub->callback(
        [options, &action, perform] { action = [options, perform] { return perform(*options); }; });
    return sub;
  };
  CLI::App* const adds = make(
      "add", "Add sessions, oldest first; each is judged by those before it, as check does", add);
  adds->add_option("sessions", options->sessions, "Folders of sessions")->required();
  options->baseline_options.add_options(*adds);
  make("list", "Its sessions, and the levels that were accepted", list);
  CLI::App* const shows = make("show", "What the last sessions said of a metric", show);
  add_patterns(*shows, *options);
  shows->add_option("--last", options->last, "Sessions of each series")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100000}))
      ->capture_default_str();
  CLI::App* const accepts = make("accept", "Accept the current level as baseline", accept);
  add_patterns(*accepts, *options);
  accepts
      ->add_option(
          "--since", options->since, "The first session with the new level, or a time: 2026-11-22")
      ->required();
  accepts->add_option("--reason", options->reason, "Why, for people");
  CLI::App* const prunes = make("prune", "Remove sessions that are too old", prune);
  prunes->add_option("--before", options->before, "Those that began before: 2025-01-01")
      ->required();
  prunes->add_flag("--dry-run", options->dry_run, "Say how many, and remove none");
  make("export", "All of it as one table", export_points)
      ->add_option("-o,--output", options->output, "File to write, as RFC 4180")
      ->required();
}

}  // namespace launchgap::cli
