#include "harness/summary/session_data.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/record/finding_json.h"
#include "harness/record/reader.h"
#include "harness/record/records.h"
#include "harness/summary/published.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

/// session.json with a plan of many runs and what the doctor found has some megabytes.
constexpr std::size_t kLongestSessionJson = std::size_t{1} << 28;

/// Throws Error.
void check_schema(const Json& json) {
  const auto schema = field<std::string>(json, "schema", "");
  if (schema != kSchema) {
    throw Error(
        "its schema is '{}' and this launchgap reads {}: use the launchgap that wrote "
        "it, or a newer one",
        schema,
        kSchema);
  }
}

SessionRecord read_session_json(const fs::path& folder) {
  const fs::path path = folder / "session.json";
  std::error_code failed;
  const fs::file_status status = fs::status(folder, failed);
  if (failed && failed != std::errc::no_such_file_or_directory &&
      failed != std::errc::not_a_directory)
    throw Error("{} cannot be read: {}", folder.string(), failed.message());
  if (!fs::is_directory(status)) {
    throw UsageError(
        "{} is not a folder: name a session's folder, like results/20261120T093000Z-1a2b3c",
        folder.string());
  }
  if (fs::symlink_status(path, failed).type() == fs::file_type::not_found)
    throw UsageError("{} has no session.json, so it is not the folder of a session",
                     folder.string());
  const std::string text = InputFile(path).text(kLongestSessionJson);
  try {
    const Json json = parse_json(text);
    check_schema(json);
    SessionRecord record = fields_from_json<SessionRecord>(json);
    if (json.contains("doctor")) record.doctor = json.at("doctor");
    return record;
  } catch (const Error& error) {
    throw Error("{}: {}", path.string(), error.what());
  }
}

/// What the doctor found when the session began. One that cannot be read is a problem, not an
/// error.
std::vector<Finding> findings_of_doctor(const Json& doctor, std::vector<std::string>& problems) {
  std::vector<Finding> findings;
  try {
    for (const Json& finding : array_field(doctor, "findings"))
      findings.push_back(finding_from_json(finding));
  } catch (const Error& error) {
    problems.push_back(fmt::format("session.json, what the doctor found: {}", error.what()));
  }
  return findings;
}

/// One process: device, arm, process configuration, replicate and attempt.
using RunKey = std::tuple<std::string, std::string, ProcessConfig, int, int>;

/// Reads one records file into the session.
class FileReader {
 public:
  /// `read` has the runs of the files before this one.
  FileReader(SessionData& session, std::map<RunKey, fs::path>& read, const fs::path& file)
      : session_(session), read_(read), file_(file) {}

  void read() {
    run_.file = file_.filename().string();
    run_.status = "incomplete";
    run_.reason = "the records end before the run did";
    const std::vector<std::string> problems =
        read_records(file_,
                     {[this](SampleBlock&& block) { add(std::move(block)); },
                      [this](const Json& record) { add(record); }});
    std::ranges::copy(problems, std::back_inserter(session_.problems));
    if (!copy_of_.empty()) {
      session_.problems.push_back(
          fmt::format("{}: it has the run of {} once more, and does not count",
                      file_.string(),
                      copy_of_.filename().string()));
      return;
    }
    if (!have_run_) {
      if (problems.empty())
        session_.problems.push_back(file_.string() + ": no run was begun in it");
      return;
    }
    for (auto& [name, pending] : pending_) {
      try {
        finish(name, pending);
      } catch (const Error& error) {
        session_.problems.push_back(fmt::format("{}: {}", file_.string(), error.what()));
      }
    }
    session_.runs.push_back(run_);
  }

 private:
  struct Pending {
    CaseOutcome outcome;
    std::string method, algorithm;
    std::vector<SampleBlock> blocks;
  };

  void add(SampleBlock&& block) {
    Pending& pending = pending_[block.case_name];
    use_current_keys(block);
    pending.blocks.push_back(std::move(block));
  }

  void add(const Json& json) {
    const auto kind = field<std::string>(json, "record");
    if (kind == RunRecord::kName) {
      take_run(json);
    } else if (!have_run_) {
      return;
    } else if (kind == SummaryRecord::kName) {
      const auto record = fields_from_json<SummaryRecord>(json);
      Pending& pending = pending_[record.case_name];
      pending.method = record.method.value_or("");
      pending.algorithm = record.algorithm.value_or("");
      pending.outcome = {record.status, record.reason};
      if (record.steady == false) run_.restless_cases.push_back(record.case_name);
    } else if (kind == Choice::kName) {
      session_.choices.push_back({run_.device,
                                  run_.arm,
                                  run_.process_config,
                                  run_.replicate,
                                  fields_from_json<Choice>(json)});
    } else if (kind == ResultBits::kName) {
      auto record = fields_from_json<ResultBits>(json);
      CaseName::parse(record.case_name);  // or throw
      session_.bits.push_back({run_.device, run_.arm, run_.replicate, std::move(record)});
    } else if (kind == TelemetryRecord::kName) {
      const auto record = fields_from_json<TelemetryRecord>(json);
      session_.telemetry.push_back({run_.device,
                                    run_.arm,
                                    run_.process_config,
                                    run_.replicate,
                                    record.case_name,
                                    record.block,
                                    record.at_ns,
                                    record.values});
    } else if (kind == TraceRecord::kName) {
      session_.traces.push_back(
          {run_.device, run_.process_config, run_.replicate, fields_from_json<TraceRecord>(json)});
    } else if (kind == RecordingRecord::kName) {
      session_.recordings.push_back(
          {run_.device, run_.replicate, fields_from_json<RecordingRecord>(json)});
    } else if (kind == SlowSampleRecord::kName) {
      auto record = fields_from_json<SlowSampleRecord>(json);
      std::string events = record.events.value_or(file_.filename().string() + ".gz");
      session_.slow_samples.push_back({run_.device,
                                       run_.arm,
                                       run_.process_config,
                                       run_.replicate,
                                       std::move(events),
                                       std::move(record)});
    } else if (kind == ThreadEventsRecord::kName) {
      auto record = fields_from_json<ThreadEventsRecord>(json);
      CaseName::parse(record.case_name);  // or throw
      session_.thread_events.push_back(
          {run_.device, run_.arm, run_.process_config, run_.replicate, std::move(record)});
    } else if (kind == JobRecord::kName) {
      auto record = fields_from_json<JobRecord>(json);
      for (const StepVariation& own : record.variation) CaseName::parse(own.case_name);  // or throw
      session_.jobs.push_back({run_.device, run_.replicate, std::move(record)});
    } else if (kind == EndRecord::kName) {
      take_end(json);
    }
  }

  /// All of it or, where it throws, nothing.
  void take_run(const Json& json) {
    const auto record = fields_from_json<RunRecord>(json);
    if (record.device.uuid.empty()) throw Error("\"uuid\" is missing");
    RunInfo run = run_;
    run.node = record.node;
    run.device = record.device.uuid;
    run.replicate = record.replicate;
    run.arm = record.arm;
    run.process_config = record.process_config;
    run.attempt = record.attempt;
    run.begin_utc = record.begin_utc;
    run.begin_ns = record.begin_ns;
    run.pid = record.pid;
    run.cpus = record.cpus.value_or("");
    run.side_by_side = record.side_by_side;
    run.simulated = record.simulated;
    run.trace_state = record.trace_state.value_or("");
    if (record.warm_up && record.warm_up->is_object())
      run.steady = optional_field<bool>(*record.warm_up, "steady");
    run.measured_under_tool = record.measured_under_tool.value_or("");
    take_common(record, run);
    const auto [entry, first] = read_.try_emplace(
        {run.device, run.arm, run.process_config, run.replicate, run.attempt}, file_);
    if (!first) {
      copy_of_ = entry->second;
      return;
    }
    run_ = std::move(run);
    have_run_ = true;
  }

  void take_end(const Json& json) {
    const auto record = fields_from_json<EndRecord>(json);
    RunInfo run = run_;
    run.other_processes = record.other_processes;
    run.memory_kept_bytes = record.memory_kept_bytes;
    run.telemetry_missing = record.telemetry_missing;
    run.memory_kept_by = record.memory_kept_by.value_or("");
    run.status = record.status;
    run.reason = record.reason;
    run.duration_s = record.duration_s;
    run.delay_ns = record.delay_ns;
    run.delay_problem = record.delay_problem.value_or("");
    run.simulated = run.simulated || record.simulated.value_or(false);
    take_common(record, run);
    run_ = std::move(run);
  }

  /// A process that measures its own first launch knows the form of its kernels at its end only,
  /// and libraries are loaded by the cases that need them.
  template <class Record>
  static void take_common(const Record& record, RunInfo& run) {
    run.kernel_form = record.kernel_form.value_or(run.kernel_form);
    if (record.jit) run.jit = record.jit;
    if (record.libraries) run.libraries = *record.libraries;
    if (!record.fingerprint) return;
    if (!record.fingerprint->is_object()) throw Error("\"fingerprint\" is no object");
    run.fingerprint = *record.fingerprint;
  }

  void finish(const std::string& name, Pending& pending) {
    CaseData& data =
        session_.cases[{run_.device, run_.arm, run_.process_config, CaseName::parse(name)}];
    if (pending.outcome.status == Status::ok) {
      ++run_.cases_ok;
    } else if (pending.outcome.status && pending.outcome.status != Status::unsupported) {
      ++run_.cases_failed;
    }
    CaseOutcome& outcome = data.outcomes[run_.replicate];
    if (pending.outcome.status || !outcome.status) outcome = pending.outcome;
    if (!pending.method.empty()) data.method = pending.method;
    const Status status = pending.outcome.status.value_or(Status::ok);
    if (status != Status::ok) return;
    if (!pending.algorithm.empty()) data.algorithms[run_.replicate] = pending.algorithm;
    for (SampleBlock& block : pending.blocks) {
      BlockInfo& info = data.blocks.emplace_back(
          BlockInfo{run_.replicate, block.block, block.begin_ns, block.end_ns, {}});
      for (std::size_t m = 0; m < block.metrics.size(); ++m) {
        if (std::ranges::find(data.metric_order, block.metrics[m]) == data.metric_order.end()) {
          data.metric_order.push_back(block.metrics[m]);
        }
        std::vector<double>& all = data.samples[block.metrics[m]][run_.replicate];
        const std::size_t before = all.size();
        std::ranges::copy_if(block.values[m], std::back_inserter(all), [](double value) {
          return std::isfinite(value);
        });
        info.counts[block.metrics[m]] = all.size() - before;
      }
    }
    // What others have published has no course in time, and there may be a million of it.
    if (run_.arm == kPublished) data.blocks = {};
  }

  SessionData& session_;
  std::map<RunKey, fs::path>& read_;
  fs::path file_;
  fs::path copy_of_;  // the file that had this run already
  bool have_run_ = false;
  RunInfo run_;
  std::map<std::string, Pending> pending_;
};

/// The records files of a session: attempts of a run in the order in which they were made, which is
/// not that of their names.
std::vector<fs::path> record_files(const fs::path& folder, std::vector<std::string>& problems) {
  struct RecordsFile {
    int replicate, attempt;
    fs::path path;
    auto operator<=>(const RecordsFile&) const = default;
  };
  std::vector<RecordsFile> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() != ".jsonl") continue;
    const Json first = first_record(entry->path()).value_or(Json::object());
    found.push_back({maybe<int>(first, "replicate").value_or(0),
                     maybe<int>(first, "attempt").value_or(0),
                     entry->path()});
  }
  if (failed) {
    problems.push_back(fmt::format(
        "{} cannot be read, and it has the records: {}", folder.string(), failed.message()));
  }
  std::ranges::sort(found);
  std::vector<fs::path> paths;
  for (RecordsFile& file : found) paths.push_back(std::move(file.path));
  return paths;
}

/// A case that failed in a later attempt of a run has nothing to say for that run.
void drop_failed_samples(SessionData& session) {
  for (auto& [key, data] : session.cases) {
    for (const auto& [replicate, outcome] : data.outcomes) {
      if (outcome.status.value_or(Status::ok) == Status::ok) continue;
      for (auto& [metric, by_replicate] : data.samples) by_replicate.erase(replicate);
      std::erase_if(data.blocks, [failed = replicate](const BlockInfo& block) {
        return block.replicate == failed;
      });
    }
  }
}

/// Cases that the plan has and no record: the session ended before they began, unless `why_not`
/// knows another reason.
void add_planned_cases(SessionData& session,
                       const std::vector<PlanEntry>& plan,
                       const std::string& why_not) {
  std::set<std::tuple<std::string, std::string, ProcessConfig, std::string>> seen;
  for (const auto& [key, data] : session.cases)
    seen.emplace(key.device, key.arm, key.process_config, key.name.text());
  for (const PlanEntry& run : plan) {
    for (const std::string& name : run.cases) {
      if (!seen.emplace(run.device, run.arm, run.process_config, name).second) continue;
      CaseData& data =
          session.cases[{run.device, run.arm, run.process_config, CaseName::parse(name)}];
      const DeviceFacts* facts = session.device(run.device);
      data.outcomes[0] = {Status::skipped,
                          facts && !facts->usable ? "the device was not used: " + facts->reason
                          : !why_not.empty()      ? why_not
                                                  : "not reached: the session ended before"};
    }
  }
}

}  // namespace

void use_current_keys(SampleBlock& block) {
  const std::size_t family = block.case_name.find('/');
  const std::string benchmark = block.case_name.substr(0, block.case_name.find('/', family + 1));
  for (std::string& key : block.metrics) key = current_key(benchmark, key);
}

const DeviceFacts* SessionData::device(const std::string& uuid) const {
  const auto place = places_.find(uuid);
  if (place != places_.end() && place->second < devices.size() &&
      devices[place->second].uuid == uuid)
    return &devices[place->second];
  const auto found = std::ranges::find(devices, uuid, &DeviceFacts::uuid);
  if (found == devices.end()) return nullptr;
  places_[uuid] = static_cast<std::size_t>(found - devices.begin());
  return &*found;
}

bool SessionData::has_arm(std::string_view arm) const {
  return std::ranges::any_of(runs, [&](const RunInfo& run) { return run.arm == arm; });
}

namespace {

/// Those whose operations can be read.
void read_patterns(SessionData& session, std::vector<PatternOrigin>& origins) {
  for (PatternOrigin& origin : origins) {
    try {
      // A name from a file leads nowhere else.
      Pattern pattern =
          read_pattern(session.folder / "patterns" / (pattern_name(origin.name) + ".csv"));
      pattern.origin = std::move(origin);
      session.patterns.push_back(std::move(pattern));
    } catch (const Error& error) {
      session.problems.push_back(fmt::format("a pattern cannot be read: {}", error.what()));
    }
  }
}

}  // namespace

SessionData read_session(const fs::path& folder) {
  SessionData session;
  session.folder = folder;
  SessionRecord record = read_session_json(folder);
  session.id = record.session_id.value_or(folder.filename().string());
  session.state = record.state;
  session.host = std::move(record.host);
  session.tracing = std::move(record.tracing);
  session.random_order = record.random_order;
  session.notes = std::move(record.notes);
  if (record.doctor) session.doctor = findings_of_doctor(*record.doctor, session.problems);
  session.devices = std::move(record.devices);
  session.recording_costs =
      std::move(record.recording_costs).value_or(std::vector<RecordingCost>());
  session.tuned = std::move(record.tuned).value_or(std::vector<TunedKernel>());
  std::map<RunKey, fs::path> read;
  const std::vector<fs::path> files = record_files(folder / "records", session.problems);
  const bool folder_unread = !session.problems.empty();
  for (const fs::path& file : files) FileReader(session, read, file).read();
  drop_failed_samples(session);
  add_planned_cases(session, record.plan, folder_unread ? "its records cannot be read" : "");
  read_replays(session);
  read_patterns(session, record.patterns);
  if (record.published) read_published(session, *record.published);
  return session;
}

void read_replays(SessionData& session) {
  constexpr std::size_t kLongest = std::size_t{256} << 20;
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(session.folder / "replays", failed), end;
       !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    try {
      const Json json = parse_json(InputFile(file).text(kLongest));
      if (field<std::string>(json, "record") != ReplayRecord::kName)
        throw Error("it is no replay of allocations");
      session.replays.push_back({file.stem().string(), fields_from_json<ReplayRecord>(json)});
    } catch (const Error& error) {
      session.problems.push_back(fmt::format("{}: {}", file.string(), error.what()));
    }
  }
}

}  // namespace launchgap
