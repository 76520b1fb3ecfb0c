// launchgap record
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/import_answer.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/program_recorder.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/text.h"
#include "harness/import/imported_session.h"
#include "harness/injected/raw_recording.h"
#include "harness/run/devices.h"
#include "harness/run/planned_session.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kLevelNames(std::begin(injected::kRawLevels),
                                           std::end(injected::kRawLevels));

struct RecordCommand {
  std::vector<std::string> command, command_line;
  fs::path output;
  std::optional<int> runs_asked;
  int runs = 1;
  std::string level = "all";
  std::string step = "ProfilerStep";
  std::string limit = "1GiB";
  double seconds = 0;
  bool cost = false;
  bool no_page = false;
};

injected::Settings settings_of(const RecordCommand& asked) {
  injected::Settings settings;
  settings.level =
      static_cast<std::uint32_t>(std::ranges::find(kLevelNames, asked.level) - kLevelNames.begin());
  const auto bytes = bytes_of_text(asked.limit);
  if (!bytes || *bytes == 0)
    throw UsageError("--limit is a size such as 500MiB, and not '{}'", printable(asked.limit, 40));
  settings.limit_bytes = *bytes;
  settings.seconds = asked.seconds;
  return settings;
}

/// The session of what was recorded, with tables and page.
void make_session(const RecordCommand& asked, const RecordedStarts& starts) {
  recording::ImportRequest request;
  request.files = starts.files;
  request.output = asked.output;
  request.step = asked.step;
  request.command_line = asked.command_line;
  request.skips_empty = true;
  request.host = host_facts();
  request.costs = starts.costs;
  for (const std::string& line : recording::import_recordings(request)) say("{}.", line);
  report_import(asked.output, !asked.no_page, "", cost_text(starts.costs));
}

/// Starts the program as often as was asked for, unless it fails.
RecordedStarts record_starts(const RecordCommand& asked,
                             const injected::Settings& settings,
                             const fs::path& folder) {
  RecordedStarts starts;
  for (int run = 0; run < asked.runs && starts.problem.empty(); ++run) {
    const RecordedStart started =
        start_recorded(asked.command, settings, folder / fmt::format("r{}", run));
    starts.exit_code = started.exit_code;
    starts.files.insert(starts.files.end(), started.files.begin(), started.files.end());
    if (!started.still_running.empty()) {
      starts.still_running = true;
      say("launchgap: {}.", still_running_text(started, folder));
    }
    if (!started.not_started.empty()) {
      starts.problem = started.not_started;
    } else if (!started.no_recorder.empty()) {
      starts.problem = "nothing was recorded: " + started.no_recorder;
    } else if (started.exit_code != 0) {
      const std::string how = started.signal != 0 ? fmt::format("by signal {}", started.signal)
                                                  : fmt::format("with {}", started.exit_code);
      starts.problem = fmt::format(
          "start {} of {} ended {}; what was recorded is kept.", run + 1, asked.runs, how);
    }
  }
  return starts;
}

ExitCode record(const RecordCommand& asked) {
  // Standard output is the program's.
  answer_beside_document();
  if (const std::string why_not = why_not_recorded(asked.command); !why_not.empty()) {
    say("launchgap: {}.", why_not);
    const RecordedStart started = start_plain(asked.command);
    if (!started.not_started.empty()) say("launchgap: {}", started.not_started);
    return static_cast<ExitCode>(started.exit_code);
  }
  const injected::Settings settings = settings_of(asked);
  record_library();
  const bool made = !fs::exists(asked.output);
  make_output_folder(asked.output);
  RawFolder folder(asked.output);
  const RecordedStarts starts =
      asked.cost
          ? measure_recording_costs(asked.command, settings, asked.runs, folder.path(), kLevelNames)
          : record_starts(asked, settings, folder.path());
  if (!starts.problem.empty()) say("launchgap: {}", starts.problem);
  if (starts.still_running) folder.keep();
  try {
    if (!starts.files.empty()) make_session(asked, starts);
  } catch (const recording::NothingRecorded& nothing) {
    say("launchgap: nothing was recorded: {}.", nothing.what());
  } catch (const Error& error) {
    folder.keep();
    say("launchgap: {}; what was recorded is in {}, and `launchgap import` reads it.",
        error.what(),
        folder.path().string());
  }
  std::error_code ignored;
  if (made) fs::remove(asked.output, ignored);  // if there is nothing in it
  // Whatever becomes of the recording, the program's exit code is its own.
  return static_cast<ExitCode>(starts.exit_code);
}

}  // namespace

void add_record(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  CLI::App* const command = app.add_subcommand(
      "record", "Record what any CUDA program launches, unchanged, and make a session of it");
  auto options = std::make_shared<RecordCommand>();
  options->command_line = command_line;
  CLI::Option* const words = command->add_option(
      "command", options->command, "The program and its arguments. Put -- in front");
  command->add_option("-o,--output",
                      options->output,
                      "Folder of the session, new or empty; default: results/<session>");
  command
      ->add_option("--runs",
                   options->runs_asked,
                   "Start the program so often, for what varies between runs; default: 1")
      ->check(whole_number(1, 10000));
  one_of(command->add_option("--level",
                             options->level,
                             "What is recorded: launches (calls alone), kernels (and what the GPU "
                             "did), all (and waits and memory)"),
         kLevelNames)
      ->capture_default_str();
  command
      ->add_option("--step",
                   options->step,
                   "NVTX ranges that are steps: of this name, or with # and a number behind it")
      ->capture_default_str();
  command
      ->add_option("--limit",
                   options->limit,
                   "At most so many bytes for each process; then recording stops, and the program "
                   "goes on")
      ->capture_default_str();
  command
      ->add_option("--for",
                   options->seconds,
                   "Record for so many seconds of each process; the program goes on")
      ->check(number_between(0.1, 1e7));
  command->add_flag(
      "--cost",
      options->cost,
      "Also start it without recording, and at each level, in turns: what each adds "
      "to a start and to a recorded call. --runs are the rounds, 10 if not told; from "
      "6 on there are intervals");
  command->add_flag("--no-report", options->no_page, "Leave out report.html");
  command->footer(
      "Example: launchgap record --runs 10 -o results/train -- python train.py --steps 100\n"
      "Exit codes: the program's own, as a shell has it; 2 if it was not started.");
  command->callback([options, words, &action] {
    if (words->count() > 0) options->command = programs_words(options->command_line);
    if (options->command.empty() || options->command.front().empty())
      throw UsageError(
          "record: put `--` and the command behind the options: launchgap record -o results/train "
          "-- python train.py");
    options->runs = options->runs_asked.value_or(options->cost ? 10 : 1);
    if (options->output.empty()) options->output = fs::path("results") / new_session_id();
    action = [options] { return record(*options); };
  });
}

}  // namespace launchgap::cli
