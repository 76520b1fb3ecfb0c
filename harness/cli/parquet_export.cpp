#include "harness/cli/parquet_export.h"

#include <algorithm>
#include <fcntl.h>
#include <future>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "harness/cli/page.h"
#include "harness/cli/python_package.h"
#include "harness/core/csv_writer.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/summary/all_tables.h"

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

}  // namespace

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

}  // namespace launchgap::cli
