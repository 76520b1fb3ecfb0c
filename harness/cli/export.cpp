// launchgap export
#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/gmtrace.h"
#include "harness/allocation/session_trace.h"
#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/page.h"
#include "harness/cli/parquet_export.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/import/chrome_export.h"
#include "harness/measure/telemetry.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/google_benchmark.h"

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
  make_output_folder(output);
  const SignalWatch watch;
  std::vector<std::string_view> empty;
  try {
    for (const TableUse use : {TableUse::details, TableUse::export_only}) {
      std::ranges::copy(write_tables(summarised.table_inputs(), use, output),
                        std::back_inserter(empty));
    }
  } catch (const Error&) {
    remove_tables(output);
    throw;
  }
  for (const std::string& problem : summarised.session.problems) say("launchgap: {}", problem);
  std::error_code failed;  // one that stays says nothing wrong
  for (const std::string_view table : empty) fs::remove(output / table, failed);
  if (!empty.empty()) {
    say("{} of {} tables have no rows and are left out: {}",
        empty.size(),
        std::ranges::count_if(all_tables(),
                              [](const Table& table) { return !of_comparison(table.use); }),
        fmt::join(empty, ", "));
  }
  answer("{}\n", output.string());
  return summarised.session.problems.empty() ? ExitCode::done : ExitCode::failed;
}

/// What the machine said of itself during the run whose events these are, on their clock.
std::vector<recording::CounterValue> counters_beside(const SessionData& session,
                                                     const fs::path& events_file) {
  const std::string records = events_file.stem().string();
  const auto run = std::ranges::find(session.runs, records, &RunInfo::file);
  if (run == session.runs.end()) return {};
  std::map<std::string, std::int64_t> offsets;  // of the clocks, by case
  for (const TraceInfo& trace : session.traces) {
    const bool same = trace.device == run->device && trace.process_config == run->process_config &&
                      trace.replicate == run->replicate;
    if (same && trace.record.case_name && trace.record.clock && trace.record.clock->offset_ns)
      offsets[*trace.record.case_name] = *trace.record.clock->offset_ns;
  }
  std::vector<recording::CounterValue> counters;
  for (const TelemetryInfo& reading : session.telemetry) {
    const auto offset = offsets.find(reading.case_name);
    if (reading.device != run->device || reading.arm != run->arm ||
        reading.process_config != run->process_config || reading.replicate != run->replicate ||
        offset == offsets.end())
      continue;
    for (const TelemetryQuantity& quantity : telemetry_quantities()) {
      const auto value = reading.values.find(std::string(quantity.key));
      if (value == reading.values.end() || quantity.counter || quantity.unit.empty()) continue;
      counters.push_back({std::string(quantity.key),
                          std::string(quantity.unit),
                          reading.at_ns + offset->second,
                          value->second});
    }
  }
  return counters;
}

/// Whether processes go to one file, and not to a folder with one for each, which is made. Throws
/// UsageError if it cannot be.
bool goes_to_file(const std::string& folder,
                  std::size_t processes,
                  const fs::path& output,
                  std::string_view extension) {
  const bool to_file = output.extension() == extension || output.extension() == ".gz";
  if (to_file && processes > 1) {
    throw UsageError("{} has the events of {} processes: name a folder with -o", folder, processes);
  }
  if (!to_file) make_output_folder(output);
  return to_file;
}

/// Events stay with the session that kept them. Throws UsageError that names one.
void refuse_merged(const std::string& folder) {
  const SessionRecord record = read_session_record(folder);
  if (!record.parts || record.parts->empty()) return;
  throw UsageError(
      "{} is put together, and events stay with the sessions that kept them: name one, as {}",
      folder,
      (fs::path(folder) / record.parts->front().folder).lexically_normal().string());
}

/// One process to a file; several to a folder, each to a file of its own.
ExitCode export_chrome(const std::string& folder, const fs::path& output) {
  refuse_merged(folder);
  const Summarised summarised(folder);
  const std::vector<fs::path> files = allocation::event_files(folder);
  const bool to_file = goes_to_file(folder, files.size(), output, ".json");
  const SignalWatch watch;
  for (const fs::path& file : files) {
    // "x.jsonl.gz" becomes "x.json.gz".
    const fs::path trace = to_file ? output : output / file.stem().replace_extension(".json.gz");
    const std::uint64_t left_out =
        recording::export_chrome_trace(file, trace, counters_beside(summarised.session, file));
    if (left_out > 0)
      say("{}: {} events have no time that a trace could show", trace.string(), left_out);
    answer("{}\n", trace.string());
  }
  return ExitCode::done;
}

/// The same; of several, those that have no allocations are left out.
ExitCode export_gmtrace(const std::string& folder, const fs::path& output) {
  refuse_merged(folder);
  struct Process {
    fs::path events;
    std::unique_ptr<allocation::Trace> trace;
  };
  std::vector<Process> processes;
  std::string without;
  for (const fs::path& file : allocation::event_files(folder)) {
    if (auto trace = allocation::find_trace(file)) {
      processes.push_back({file, std::move(trace)});
    } else {
      without = file.string();
    }
  }
  if (processes.empty()) throw UsageError(allocation::no_allocations(without));
  const bool to_file = goes_to_file(folder, processes.size(), output, ".csv");
  const SignalWatch watch;
  for (Process& process : processes) {
    // "x.jsonl.gz" becomes "x.gmtrace.csv.gz".
    const fs::path trace =
        to_file ? output : output / process.events.stem().replace_extension(".gmtrace.csv.gz");
    allocation::write_gmtrace(*process.trace, trace);
    process.trace.reset();
    answer("{}\n", trace.string());
  }
  return ExitCode::done;
}

ExitCode export_google_benchmark(const std::string& folder, const fs::path& output) {
  const SessionData session = read_session(folder);
  std::error_code failed;
  if (fs::is_directory(output, failed))
    throw UsageError("{} is a folder: name a file with -o", output.string());
  const SignalWatch watch;
  if (write_google_benchmark(session, output) == 0) {
    throw UsageError("{} has no times of plain or recorded runs: nothing is written", folder);
  }
  for (const std::string& problem : session.problems) say("launchgap: {}", problem);
  answer("{}\n", output.string());
  return session.problems.empty() ? ExitCode::done : ExitCode::failed;
}

struct ExportFormat {
  std::string_view name, holds;
  std::string_view example;  // what follows `launchgap export`
  ExitCode (*write)(const std::string& folder, const fs::path& output);
};

/// The first is the default.
constexpr ExportFormat kFormats[] = {
    {"csv",
     "devices, runs, summary, details and every sample, as RFC 4180",
     "results/tonight --format csv -o tonight-csv",
     export_csv},
    {"parquet",
     "tables and samples by date and node, for DuckDB, pandas and Spark; added to the folder, by "
     "pyarrow",
     "results/tonight --format parquet -o fleet",
     export_parquet},
    {"chrome-trace",
     "the kept events, for Perfetto and Holistic Trace Analysis",
     "results/my-job --format chrome-trace -o my-job.json.gz",
     export_chrome},
    {"google-benchmark",
     "each process's medians as one JSON, for its compare.py",
     "results/tonight --format google-benchmark -o tonight.json",
     export_google_benchmark},
    {"gmtrace",
     "the kept allocations, for `replay`",
     "results/my-job --format gmtrace -o my-job.gmtrace.csv",
     export_gmtrace},
};

}  // namespace

void add_export(CLI::App& app, Action& action) {
  struct Options {
    std::string folder, format = std::string(kFormats[0].name), output;
  };
  CLI::App* const command = app.add_subcommand("export", "Write a session for other programs");
  auto options = std::make_shared<Options>();
  command->add_option("session", options->folder, "Folder of a session")->required();
  std::vector<std::string> names, meanings, examples;
  for (const ExportFormat& format : kFormats) {
    names.emplace_back(format.name);
    meanings.push_back(fmt::format("{}: {}", format.name, format.holds));
    examples.push_back(fmt::format("launchgap export {}", format.example));
  }
  one_of(command->add_option(
             "--format", options->format, fmt::format("{}", fmt::join(meanings, "; "))),
         names)
      ->capture_default_str();
  command
      ->add_option("-o,--output",
                   options->output,
                   "Folder to write, new or empty, of parquet also one that has some; of a "
                   "chrome-trace also a .json or .json.gz; of a "
                   "gmtrace also a .csv or .csv.gz; of google-benchmark a file")
      ->required();
  command->footer(fmt::format("Example: {}", fmt::join(examples, "\n         ")));
  command->callback([options, &action] {
    action = [options] {
      return std::ranges::find(kFormats, options->format, &ExportFormat::name)
          ->write(options->folder, options->output);
    };
  });
}

}  // namespace launchgap::cli
