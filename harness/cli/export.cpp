// launchgap export
#include <cmath>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/page.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

/// Half an export is none, and would stand in the way of another one. The folder was empty.
void remove_tables(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> tables;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".csv" || entry->path().filename() == "tables.json")
      tables.push_back(entry->path());
  }
  for (const fs::path& table : tables) fs::remove(table, failed);
  fs::remove(folder, failed);  // unless there is something else by now
}

ExitCode export_csv(const std::string& folder, const fs::path& output) {
  const Summarised summarised(folder);
  std::error_code failed;
  if (fs::exists(output, failed) &&
      !(fs::is_directory(output, failed) && fs::is_empty(output, failed))) {
    throw UsageError(fmt::format(
        "{} exists already and is not an empty folder: name another with -o", output.string()));
  }
  fs::create_directories(output, failed);
  if (failed)
    throw UsageError(fmt::format("{} cannot be made: {}", output.string(), failed.message()));
  const SignalWatch watch;
  try {
    write_tables(summarised.tabled(), TableUse::details, output);
    write_tables(summarised.tabled(), TableUse::samples, output);
  } catch (const Error&) {
    remove_tables(output);
    throw;
  }
  for (const std::string& problem : summarised.session.problems) say("launchgap: {}", problem);
  answer("{}\n", output.string());
  return summarised.session.problems.empty() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  struct Options {
    std::string folder, format = "csv", output;
  };
  CLI::App* const command = app.add_subcommand("export", "Write a session for other programs");
  auto options = std::make_shared<Options>();
  command->add_option("session", options->folder, "Folder of a session")->required();
  command
      ->add_option("--format",
                   options->format,
                   "csv: devices, runs, summary, details and every sample, as RFC 4180")
      ->check(CLI::IsMember({"csv"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Folder to write, new or empty")->required();
  command->footer("Example: launchgap export results/tonight --format csv -o tonight-csv");
  command->callback([options, &action] {
    action = [options] { return export_csv(options->folder, options->output); };
  });
}

}  // namespace launchgap::cli
