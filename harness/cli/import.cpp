// launchgap import
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/page.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/import/import_folder.h"
#include "harness/import/imported_session.h"
#include "harness/import/published_session.h"
#include "harness/import/recording.h"
#include "harness/import/tuner_cache.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/job_answer.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

/// An answer has no more lines, so that it stands on one screen; allocations have a few of their
/// own.
constexpr std::size_t kMostLines = 14;

/// A line for each process and GPU whose allocations were recorded, as far as they stand on a
/// screen.
std::string allocation_table(const SessionData& session) {
  std::vector<std::vector<std::string>> rows = {{"allocations on",
                                                 "process",
                                                 "allocations",
                                                 "releases",
                                                 "from before",
                                                 "failed",
                                                 "peak",
                                                 "live at the end"}};
  for (const RecordingInfo& info : session.recordings) {
    const RecordingRecord& record = info.record;
    if (!record.allocations) continue;
    const DeviceFacts* const device = session.device(info.device);
    const auto count = [](const std::optional<std::uint64_t>& number) {
      return std::to_string(number.value_or(0));
    };
    const auto bytes = [](const std::optional<std::uint64_t>& number) {
      return bytes_text(static_cast<double>(number.value_or(0)));
    };
    rows.push_back(
        {fmt::format("GPU {}, {}", device ? device->index : 0, device ? device->name : ""),
         record.pid && *record.pid > 0 ? std::to_string(*record.pid) : "–",
         count(record.allocations),
         count(record.releases),
         count(record.unseen_releases),
         count(record.failed_allocations),
         bytes(record.most_live_bytes),
         bytes(record.live_at_end_bytes)});
  }
  if (rows.size() == 1) return "";
  constexpr std::size_t kMostRows = 6;  // with the heading
  if (rows.size() <= kMostRows) return table(rows);
  const std::size_t more = rows.size() - kMostRows;
  rows.resize(kMostRows);
  return table(rows) + fmt::format("and {} more: recordings.csv\n", more);
}

/// Where the answer as JSON goes; "-" is standard output, which then has nothing else.
void write_json(const SessionData& session, const std::string& place) {
  const std::string text = job_json(session).dump(1, ' ', false, Json::error_handler_t::replace);
  if (place == "-") {
    answer("{}\n", text);
  } else {
    write_file(place, text + "\n");
  }
}

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
  const fs::path& folder = request.output;
  std::vector<std::unique_ptr<Summarised>> sessions;
  try {
    sessions.push_back(std::make_unique<Summarised>(folder));
    const Summarised& summarised = *sessions.front();
    write_tables(summarised.table_inputs(), TableUse::session, folder);
    if (!json.empty()) write_json(summarised.session, json);
    if (json != "-") {
      // Two more say where tables and page are.
      answer_text(job_text(summarised.session, kMostLines - 2));
      answer_text(allocation_table(summarised.session));
      answer("Tables: {}\n", (folder / "summary.csv").string());
    }
    if (with_page && json == "-") {
      write_page(sessions, gap_of(sessions), folder / "report.html");
    } else if (with_page) {
      offer_page(sessions, folder);
    }
  } catch (...) {
    recording::remove_import(folder);
    throw;
  }
  recording::finish_import(folder);
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
