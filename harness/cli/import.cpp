// launchgap import
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/import_answer.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/import/imported_session.h"
#include "harness/import/published_table.h"
#include "harness/import/recording.h"
#include "harness/import/tuner_cache.h"
#include "harness/measure/benchmark.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

/// What the first file is, the others are.
std::vector<std::string> import_by_content(const recording::ImportRequest& request) {
  const fs::path& first = request.files.front();
  if (recording::are_published_sheets(request)) return recording::import_published(request);
  if (recording::is_tuner_cache(first)) return recording::import_tuner_caches(request);
  return recording::import_recordings(request);
}

/// Throws UsageError for what is no file, cannot be read or is empty.
void check_files(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    try {
      const InputFile readable(file);
    } catch (const Error& error) {
      throw UsageError(error.what());
    }
    std::error_code failed;
    if (fs::file_size(file, failed) == 0 && !failed)
      throw UsageError("{}: it is empty", printable(file.string()));
  }
}

ExitCode import(const recording::ImportRequest& request, bool with_page, const std::string& json) {
  const SignalWatch watch;
  if (!json.empty() && json != "-") check_output_place(json);
  check_files(request.files);
  for (const std::string& line : import_by_content(request)) say("{}.", line);
  report_import(request.output, with_page, json, "");
  return ExitCode::done;
}

}  // namespace

void add_import(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  struct Options {
    std::vector<std::string> files;
    std::string output;
    std::string step = "ProfilerStep";
    std::string json;
    bool no_page = false;
  };
  CLI::App* const command = app.add_subcommand(
      "import", "Make a session of what somebody else recorded: a job's launches and allocations");
  auto options = std::make_shared<Options>();
  command
      ->add_option("files",
                   options->files,
                   fmt::format("{}, plain or .gz; several for the ranks of a job. Or tables of "
                               "published values, or caches of Kernel Tuner (docs/published.md)",
                               recording::importable_forms(false)))
      ->required();
  command->add_option("-o,--output", options->output, "Folder of the session, new or empty")
      ->required();
  command
      ->add_option(
          "--step",
          options->step,
          "NVTX ranges or annotations that are steps: of this name, or with # and a number "
          "behind it")
      ->capture_default_str();
  command
      ->add_option("--json", options->json, "Write the answer as JSON here; - is standard output")
      ->type_name("FILE");
  command->add_flag("--no-report", options->no_page, "Leave out report.html");
  command->footer(
      "Example: launchgap import report1.sqlite -o results/my-job\n"
      "         launchgap report results/my-job results/machine -o compared.html");
  command->callback([options, &action, command_line] {
    action = [options, command_line] {
      recording::ImportRequest request;
      request.files.assign(options->files.begin(), options->files.end());
      request.output = options->output;
      request.step = options->step;
      request.command_line = command_line;
      for (const Benchmark& benchmark : all_benchmarks())
        request.benchmarks.push_back(benchmark.name);
      return import(request, !options->no_page, options->json);
    };
  });
}

}  // namespace launchgap::cli
