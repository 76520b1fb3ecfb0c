#include "harness/cli/report_options.h"

#include <cstdlib>
#include <string_view>

#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/regression/report.h"

namespace launchgap::cli {
namespace {

bool github_runs_it() {
  const char* const actions = std::getenv("GITHUB_ACTIONS");
  return actions && std::string_view(actions) == "true";
}

bool write(const std::string& file, const std::string& text) {
  if (file.empty()) return true;
  try {
    write_file(file, text);
    return true;
  } catch (const WriteError& error) {
    say("launchgap: {}", error.what());
    return false;
  }
}

}  // namespace

void ReportOutputs::add_options(CLI::App& command) {
  command.add_option(
      "--json", json, "File for all of it, as one JSON document (docs/check-output.md)");
  command.add_option("--junit", junit, "File for CI systems, as JUnit's XML");
  command.add_option("--markdown", markdown, "File for a CI job's summary, as Markdown");
}

ExitCode ReportOutputs::write(const regression::Report& report) const {
  answer_text(screen_text(report));
  if (github_runs_it()) answer_text(github_annotations(report));
  bool written = cli::write(json, json.empty() ? "" : report_json(report));
  written = cli::write(junit, junit.empty() ? "" : junit_xml(report)) && written;
  written = cli::write(markdown, markdown.empty() ? "" : regression::markdown(report)) && written;
  return written ? ExitCode::done : ExitCode::failed;
}

void BaselineOptions::add_options(CLI::App& command) {
  command.add_option("--across",
                     across,
                     "What you deliberately changed, separated by commas: driver_version, cuBLAS, "
                     "kernel, launchgap, …");
  command.add_option("--accepted",
                     accepted,
                     "Text file with levels that are accepted, beside those of `history accept`: "
                     "DEVICE CASE METRIC SINCE ACCEPTED REASON");
}

regression::CheckOptions BaselineOptions::check_options() const {
  regression::CheckOptions check;
  check.across = regression::Across::parse(across);
  if (!accepted.empty()) check.accepted = regression::read_accepted_levels(accepted);
  return check;
}

}  // namespace launchgap::cli
