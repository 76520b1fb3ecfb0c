// launchgap export
#include <algorithm>
#include <fcntl.h>
#include <future>
#include <iterator>
#include <map>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/gmtrace.h"
#include "harness/allocation/session_trace.h"
#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/page.h"
#include "harness/core/csv_writer.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/import/chrome_export.h"
#include "harness/measure/telemetry.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/google_benchmark.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModule = "launchgap_report.parquet";

const Table& table_called(std::string_view name) {
  return *std::ranges::find(all_tables(), name, &Table::name);
}

std::vector<std::string> header_of(const Table& table) {
  std::vector<std::string> header;
  for (const ColumnInfo& column : table.columns) header.emplace_back(column.key);
  return header;
}

/// Rows of one table, of what is read a piece at a time.
class TableFile {
 public:
  TableFile(const Table& table, const fs::path& path)
      : table_(table), out_(path, header_of(table)) {}

  void add(const SessionData& session) {
    const std::vector<SummaryRow> none;
    const SlowSamples no_samples(session, none);
    table_.fill({session, none, no_samples}, [&](std::vector<std::string> cells) {
      cells.insert(cells.begin(), session.id);
      out_.row(cells);
    });
  }
  CsvWriter& out() { return out_; }

 private:
  const Table& table_;
  CsvWriter out_;
};

/// Both ends of a pipe; that for writing is closed with the object.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw Error(with_errno("a pipe cannot be made"));
  }
  ~Pipe() { close_writing(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  fs::path writing() const { return fmt::format("/proc/self/fd/{}", ends_[1]); }
  void close_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Whether a table that a session has beside its records is as this launchgap writes it, of this
/// session.
bool is_current(const Table& table, const fs::path& path, const std::string& id) {
  std::string header;
  for (const std::string& key : header_of(table)) header += (header.empty() ? "" : ",") + key;
  try {
    std::string_view line;
    bool torn = false;
    constexpr std::size_t kLongest = 1 << 16;
    InputFile file(path);
    if (!file.next_line(line, torn, kLongest) || torn || line != header + "\r") return false;
    return !file.next_line(line, torn, std::size_t{1} << 28) || line.starts_with(id + ",");
  } catch (const Error&) {
    return false;
  }
}

/// Links to the tables that a session wrote when it ended. False if these do not serve.
bool take_own_tables(const SessionData& session, const fs::path& folder) {
  if (session.state == "running") return false;
  std::vector<fs::path> own;
  for (const Table& table : all_tables()) {
    if (table.use != TableUse::session && table.use != TableUse::every_page) continue;
    const fs::path path = session.folder / table.name;
    if (!is_current(table, path, session.id)) return false;
    own.push_back(path);
  }
  for (const fs::path& path : own) {
    std::error_code failed;
    fs::create_symlink(fs::absolute(path), folder / path.filename(), failed);
    if (failed) return false;
  }
  return true;
}

class ParquetExport {
 public:
  explicit ParquetExport(fs::path output) : output_(std::move(output)) {
    const TemporaryFolder scratch;
    finish(run_program(package_.request(std::string(kModule), {"--check"}, scratch.path())));
  }

  /// A session that counts as `id`. Returns what of it could not be read.
  std::vector<std::string> add(const fs::path& folder, const std::string& id) {
    const TemporaryFolder scratch;
    if (scratch.path().empty()) throw Error(with_errno("a temporary folder cannot be made"));
    const fs::path tables = scratch.path() / "tables";
    std::error_code failed;  // the first table says it
    fs::create_directory(tables, failed);
    SessionData session = read_session_runs(folder);
    const bool own_id = session.id == id;
    session.id = id;
    if (!own_id || !take_own_tables(session, tables)) {
      Summarised summarised(folder);
      summarised.session.id = id;
      write_tables(summarised.table_inputs(), TableUse::session, tables);
    }
    write_file(tables / "tables.json", text_of_json(describe_tables(), 1) + "\n");
    TableFile quantiles(table_called("run_quantiles.csv"), tables / "run_quantiles.csv");
    each_run_with_samples(session, [&](const SessionData& run) { quantiles.add(run); });
    quantiles.out().commit();
    TableFile telemetry(table_called("telemetry.csv"), tables / "telemetry.csv");
    telemetry.add(session);
    telemetry.out().commit();
    write_with_samples(session, tables, scratch.path());
    return std::move(session.problems);
  }

 private:
  void write_with_samples(const SessionData& session,
                          const fs::path& tables,
                          const fs::path& scratch) {
    Pipe pipe;
    ProgramRequest request = package_.request(
        std::string(kModule),
        {"--tables", tables.string(), "--output", output_.string(), "--samples", "-"},
        scratch);
    request.input = pipe.reading();
    constexpr double kGraceS = 10;  // to take away what it has begun
    request.grace_s = kGraceS;
    std::future<ProgramOutcome> writing =
        std::async(std::launch::async, [&request] { return run_program(request); });
    try {
      TableFile samples(table_called("samples.csv"), pipe.writing());
      samples.add(session);
      samples.out().mark_end();
      samples.out().commit();
    } catch (const WriteError&) {
      // Nobody reads any more: Python says why.
    } catch (...) {
      pipe.close_writing();  // without the mark of the end, so nothing of it is kept
      writing.wait();
      throw;
    }
    pipe.close_writing();
    finish(writing.get());
  }

  static void finish(const ProgramOutcome& outcome) {
    stop_if_asked();
    if (outcome.end.exit_code == ProgramOutcome::kNotFound)
      throw Error(
          "Parquet is written by Python, and there is none to run: install Python 3 with pyarrow");
    if (!outcome.end.clean())
      throw Error("nothing was written (the line above says why); Python {}", outcome.end.text());
  }

  const PythonPackage package_;
  const fs::path output_;
};

/// Adds a session, or each of those that were put together, to the folder `output`, as
/// docs/parquet.md says. Samples go through a pipe, a run at a time, so memory does not grow with
/// their number. Throws Error where Python has no pyarrow, or could not write; then what was there
/// before is there still.
ExitCode export_parquet(const std::string& folder, const fs::path& output) {
  const SessionRecord record = read_session_record(folder);
  const SignalWatch watch;
  std::error_code failed;
  if (fs::exists(output, failed) && !fs::is_directory(output, failed))
    throw UsageError("{} is no folder: name one with -o", output.string());
  ParquetExport parquet(output);
  struct One {
    fs::path folder;
    std::string id;
  };
  std::vector<One> sessions;
  if (record.parts) {
    for (const SessionPart& part : *record.parts) {
      if (part.left_out.empty())
        sessions.push_back({(fs::path(folder) / part.folder).lexically_normal(), part.session_id});
    }
  } else {
    sessions.push_back({folder, record.session_id.value_or(fs::path(folder).filename().string())});
  }
  bool whole = true;
  for (const One& session : sessions) {
    try {
      for (const std::string& problem : parquet.add(session.folder, session.id)) {
        say("launchgap: {}", problem);
        whole = false;
      }
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      if (sessions.size() == 1) throw;
      say("launchgap: {}: {}", session.folder.string(), error.what());
      whole = false;
    }
  }
  if (sessions.size() > 1) say("{} in {}", counted(sessions.size(), "session"), output.string());
  answer("{}\n", output.string());
  return whole ? ExitCode::done : ExitCode::failed;
}

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
