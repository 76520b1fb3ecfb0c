// launchgap report
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/json_output.h"
#include "harness/cli/page.h"
#include "harness/cli/report_options.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/fleet/fleet.h"
#include "harness/regression/check.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {
namespace {

constexpr std::size_t kMostProblems = 20, kMostFindings = 12, kLongestSentence = 4000;

void answer_findings(const std::vector<Finding>& findings) {
  const std::size_t shown = std::min(findings.size(), kMostFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = findings[i];
    answer("{}\n", wrapped(printable(finding.sentence, kLongestSentence), 0));
    for (const Evidence& line : finding.evidence)
      answer("- {}\n", wrapped(printable(text_of(line), kLongestSentence), 2));
  }
  if (findings.size() > shown)
    answer("{} more on the page\n", counted(findings.size() - shown, "finding"));
}

/// Whether a folder holds sessions that were put together, of so many devices that their page is a
/// fleet's. Throws what read_session_record() does.
bool is_of_many_devices(const std::string& folder) {
  const SessionRecord record = read_session_record(folder);
  if (!record.parts) return false;
  std::set<std::string_view> devices;
  for (const SessionPart& part : *record.parts) {
    if (part.left_out.empty()) devices.insert(part.devices.begin(), part.devices.end());
  }
  return devices.size() >= fleet::kManyDevices;
}

/// Draws the page, to `output` or, if that is empty, into the folder with its tables; answers what
/// it finds. Throws what write_fleet_page() does.
ExitCode report_fleet(const std::string& folder,
                      std::filesystem::path output,
                      const JsonOutput& json) {
  const SignalWatch watch;
  const fleet::Fleet fleet = fleet::read_fleet(folder);
  std::vector<std::string> problems = fleet.session.problems;
  std::ranges::copy(fleet.rows.problems, std::back_inserter(problems));
  for (std::size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i)
    say("launchgap: {}", problems[i]);
  if (problems.size() > kMostProblems)
    say("launchgap: {} more sessions like these", problems.size() - kMostProblems);
  if (fleet.rows.from_records > 0)
    say("{} with no table that serves, since it has not ended or the table is torn: the records "
        "were read",
        counted(fleet.rows.from_records, "session"));
  const FleetTables tables(fleet);
  if (output.empty()) {
    output = fleet.session.folder / "report.html";
    write_tables(tables.inputs(), TableUse::fleet, fleet.session.folder);
  }
  write_fleet_page(tables, output);
  answer_findings(all_findings(tables.inputs()));
  answer("\n{}\n", output.string());
  Json written = fleet_as_json(tables, output);
  written["problems"] = problems;
  json.write(written);
  return problems.empty() ? ExitCode::done : ExitCode::failed;
}

/// Throws UsageError unless there is one session.
void add_nights(const std::string& file,
                const BaselineOptions& options,
                const std::vector<std::unique_ptr<Summarised>>& sessions) {
  if (sessions.size() != 1)
    throw UsageError("--history goes with one session, which is checked against it");
  const regression::History history(file, regression::History::Use::read);
  Summarised& only = *sessions.front();
  only.nights = regression::night_rows(
      history, regression::figures_of(only.session), options.check_options());
}

/// A session beside itself compares nothing. Throws UsageError that names it.
void check_different(const std::vector<std::unique_ptr<Summarised>>& sessions) {
  std::map<std::string, std::string> folders;  // by the session's id
  for (const auto& one : sessions) {
    const SessionData& session = one->session;
    const std::string folder = session.folder.string();
    const auto [other, added] = folders.try_emplace(session.id, folder);
    if (added || session.id.empty()) continue;
    throw UsageError(
        other->second == folder
            ? fmt::format("{} is named twice: name two different sessions to compare them", folder)
            : fmt::format("{} and {} hold the same session, {}: leave one of them out",
                          other->second,
                          folder,
                          printable(session.id, 60)));
  }
}

void write_gap_tables_into(const std::filesystem::path& folder,
                           const std::vector<std::unique_ptr<Summarised>>& sessions,
                           const GapRows& gap) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw WriteError(fmt::format("{}: {}", folder.string(), failed.message()));
  write_gap_tables(sessions, gap, TableUse::comparison_cases, folder);
}

/// Throws UsageError if that was asked for and cannot be.
bool is_fleet(const std::vector<std::string>& folders, bool asked) {
  if (folders.size() == 1) return asked || is_of_many_devices(folders.front());
  if (asked)
    throw UsageError(
        "--fleet goes with one folder: put the sessions together by `launchgap merge`");
  return false;
}

/// The sentences, broken for a terminal, and an empty line; nothing where there are none.
std::string answers_text(const GapRows& gap) {
  std::string text;
  for (const GapAnswerRow& row : gap.answers) {
    text += wrapped(printable(row.sentence, kLongestSentence), 0) + "\n";
    for (const std::string& line : row.evidence)
      text += "- " + wrapped(printable(line, kLongestSentence), 2) + "\n";
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> folders;
    std::string output, history, tables;
    bool fleet = false;
    JsonOutput json;
    BaselineOptions baseline_options;
  };
  CLI::App* const command =
      app.add_subcommand("report", "Make the page of a session, or compare several on one page");
  auto options = std::make_shared<Options>();
  command
      ->add_option("sessions",
                   options->folders,
                   "Folders of sessions; of several, devices are laid side by side by generation")
      ->required();
  command->add_option(
      "-o,--output",
      options->output,
      "The page; default: report.html in the session's folder, comparison.html here for several");
  command->add_option("--tables",
                      options->tables,
                      "Also write the tables of the comparison (gap*.csv) into this folder");
  command->add_option("--history",
                      options->history,
                      "With one session: check it against this history, and show each metric over "
                      "the nights");
  command->add_flag("--fleet",
                    options->fleet,
                    "Of sessions that were put together: many devices side by side, from the "
                    "tables alone; the default from 20 devices");
  options->baseline_options.add_options(*command);
  options->json.add_option(*command, "What the page says");
  command->footer("Example: launchgap report results/k40 results/h200 -o gap.html");
  command->callback([options, &action] {
    action = [options] {
      options->json.begin();
      if (is_fleet(options->folders, options->fleet)) {
        if (!options->history.empty() || !options->tables.empty())
          throw UsageError(
              "the page of many devices is made of their tables alone: --history and --tables go "
              "with the page of a session");
        return report_fleet(options->folders.front(), options->output, options->json);
      }
      std::vector<std::unique_ptr<Summarised>> sessions;
      bool whole = true;
      for (const std::string& folder : options->folders) {
        sessions.push_back(std::make_unique<Summarised>(folder));
        for (const std::string& problem : sessions.back()->session.problems) {
          say("launchgap: {}", problem);
          whole = false;
        }
      }
      check_different(sessions);
      if (!options->history.empty())
        add_nights(options->history, options->baseline_options, sessions);
      std::filesystem::path output = options->output;
      if (output.empty()) {
        output = sessions.size() == 1 ? sessions.front()->session.folder / "report.html"
                                      : std::filesystem::path("comparison.html");
      }
      const SignalWatch watch;
      if (sessions.size() == 1 && options->output.empty()) {
        const Summarised& only = *sessions.front();
        write_tables(only.table_inputs(), TableUse::session, only.session.folder);
      }
      const GapRows gap = gap_of(sessions);
      if (!options->tables.empty()) write_gap_tables_into(options->tables, sessions, gap);
      write_page(sessions, gap, output);
      answer("{}", answers_text(gap));
      answer("{}\n", output.string());
      Json json = {
          {"page", output.string()}, {"gap", gap_as_json(gap)}, {"sessions", Json::array()}};
      for (const auto& session : sessions)
        json["sessions"].push_back(session_as_json(*session, output));
      options->json.write(json);
      return whole ? ExitCode::done : ExitCode::failed;
    };
  });
}

}  // namespace launchgap::cli
