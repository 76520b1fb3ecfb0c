#include "harness/cli/fleet_report.h"

#include <algorithm>
#include <set>

#include "harness/cli/page.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/fleet/fleet.h"
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

}  // namespace

bool is_of_many_devices(const std::string& folder) {
  const SessionRecord record = read_session_record(folder);
  if (!record.parts) return false;
  std::set<std::string_view> devices;
  for (const SessionPart& part : *record.parts) {
    if (part.left_out.empty()) devices.insert(part.devices.begin(), part.devices.end());
  }
  return devices.size() >= fleet::kManyDevices;
}

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

}  // namespace launchgap::cli
