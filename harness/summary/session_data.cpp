#include "harness/summary/session_data.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/pattern.h"
#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/record/finding_json.h"
#include "harness/summary/published.h"
#include "harness/summary/run_reader.h"

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

// Of sessions that are together the folder is another one, and this one's own is not there.
std::span<const double> CaseData::of_run(const std::string& metric, int replicate) const {
  const auto found = samples.find(metric);
  if (found == samples.end()) return {};
  const auto own = found->second.find(replicate);
  return own == found->second.end() ? std::span<const double>() : own->second;
}

std::vector<double> CaseData::of_all_runs(const std::string& metric) const {
  std::vector<double> all;
  const auto found = samples.find(metric);
  if (found == samples.end()) return all;
  for (const auto& [replicate, own] : found->second) all.insert(all.end(), own.begin(), own.end());
  return all;
}

fs::path records_path(const SessionData& session, const RunInfo& run) {
  return (session.folder / "records" / run.file).lexically_normal();
}

fs::path events_path(const SessionData& session, const SlowSampleInfo& sample) {
  return (session.folder / "events" / sample.events).lexically_normal();
}

std::map<CaseRun, std::vector<const TelemetryInfo*>> telemetry_by_case(const SessionData& session) {
  std::map<CaseRun, std::vector<const TelemetryInfo*>> readings;
  for (const TelemetryInfo& reading : session.telemetry)
    readings[{reading, reading.case_name}].push_back(&reading);
  return readings;
}

const std::string& SessionData::node_of(const std::string& uuid) const {
  const auto found = nodes.find(uuid);
  return found == nodes.end() ? host.node : found->second;
}

bool SessionData::has_arm(std::string_view arm) const {
  return std::ranges::any_of(runs, [&](const RunInfo& run) { return run.arm == arm; });
}

namespace {

/// Those whose operations can be read.
void read_patterns(SessionData& session,
                   const fs::path& folder,
                   std::vector<PatternOrigin>& origins) {
  for (PatternOrigin& origin : origins) {
    try {
      // A name from a file leads nowhere else.
      Pattern pattern = read_pattern(folder / "patterns" / (pattern_name(origin.name) + ".csv"));
      pattern.origin = std::move(origin);
      session.patterns.push_back(std::move(pattern));
    } catch (const Error& error) {
      session.problems.push_back(fmt::format("a pattern cannot be read: {}", error.what()));
    }
  }
}

enum class Measured { read, leave };

/// What is told by the session.json of a session, or of each that is in it; `places` of the devices
/// that are there.
void take_record(SessionData& session,
                 SessionRecord&& record,
                 std::map<std::string, std::size_t>& places) {
  session.tracing = std::move(record.tracing);
  session.random_order = record.random_order;
  std::ranges::move(record.notes, std::back_inserter(session.notes));
  if (record.doctor)
    std::ranges::move(findings_of_doctor(*record.doctor, session.problems),
                      std::back_inserter(session.doctor));
  for (DeviceFacts& device : record.devices) {
    const auto [place, added] = places.try_emplace(device.uuid, session.devices.size());
    if (added) {
      session.devices.push_back(std::move(device));
    } else if (!session.devices[place->second].usable) {
      session.devices[place->second] = std::move(device);
    }
  }
}

/// Reads the records of a session's own folder. False if that cannot be read.
bool read_runs(SessionData& session, const fs::path& folder, RunsRead read) {
  const std::size_t problems = session.problems.size();
  const std::vector<fs::path> files = record_files(folder / "records", session.problems);
  const bool could = session.problems.size() == problems;
  for (const fs::path& file : files) read_run(session, read, file);
  return could;
}

/// Of notes and findings that several processes tell, each once; of findings with the nodes.
void drop_repeated(SessionData& session, const std::vector<std::string>& nodes_of_findings) {
  std::set<std::string> told;
  std::erase_if(session.notes, [&](const Note& note) { return !told.insert(note.text).second; });
  const auto key = [](const Finding& finding) { return finding.code + " " + finding.sentence; };
  std::map<std::string, std::set<std::string>> nodes;
  for (std::size_t i = 0; i < session.doctor.size(); ++i)
    nodes[key(session.doctor[i])].insert(nodes_of_findings[i]);
  std::vector<Finding> once;
  for (Finding& finding : session.doctor) {
    const auto own = nodes.find(key(finding));
    if (own == nodes.end()) continue;
    constexpr std::size_t kMostNamed = 10;
    finding.evidence.emplace_back("on " + list_text(own->second, kMostNamed));
    nodes.erase(own);
    once.push_back(std::move(finding));
  }
  session.doctor = std::move(once);
}

/// Those of a part that no part before has; one of the same name that is another is a problem.
void add_patterns(SessionData& session,
                  const fs::path& folder,
                  std::vector<PatternOrigin> patterns) {
  SessionData own;
  read_patterns(own, folder, patterns);
  std::ranges::move(own.problems, std::back_inserter(session.problems));
  for (Pattern& pattern : own.patterns) {
    const auto known = std::ranges::find(
        session.patterns, pattern.origin.name, [](const Pattern& one) { return one.origin.name; });
    if (known == session.patterns.end()) {
      session.patterns.push_back(std::move(pattern));
    } else if (pattern_text(*known) != pattern_text(pattern)) {
      session.problems.push_back(fmt::format(
          "{}: its pattern {} has other operations than that of the sessions before, and counts as "
          "the same case",
          folder.string(),
          pattern.origin.name));
    }
  }
}

/// The sessions that are together in this one.
void read_parts(SessionData& session, Measured measured) {
  std::map<std::string, int> next_replicate;  // by device
  std::set<std::string> cpus, nodes;
  std::vector<PlanEntry> plan;
  std::vector<std::string> nodes_of_findings;
  std::map<std::string, std::size_t> places;  // of the devices
  for (const SessionPart& part : session.parts) {
    if (!part.left_out.empty()) continue;
    const fs::path folder = session.folder / part.folder;
    try {
      SessionRecord record = read_session_record(folder);
      if (record.parts) throw Error("{} is put together itself", folder.string());
      RunsRead read;
      read.first_replicate = next_replicate;
      read.folder = fs::path("..") / part.folder / "records";
      read.events_folder = fs::path("..") / part.folder / "events";
      if (record.state == "running") session.unended.insert(part.folder);
      for (const DeviceFacts& device : record.devices)
        session.nodes.try_emplace(device.uuid, record.host.node);
      cpus.insert(record.host.cpu_model);
      const std::string node = record.host.node;
      nodes.insert(node);
      if (measured == Measured::read) std::ranges::move(record.plan, std::back_inserter(plan));
      std::vector<PatternOrigin> patterns = std::move(record.patterns);
      take_record(session, std::move(record), places);
      nodes_of_findings.resize(session.doctor.size(), node);
      if (measured == Measured::leave) continue;
      const std::size_t before = session.runs.size();
      read_runs(session, folder, std::move(read));
      for (std::size_t i = before; i < session.runs.size(); ++i) {
        const RunInfo& run = session.runs[i];
        int& next = next_replicate[run.device];
        next = std::max(next, run.replicate + 1);
      }
      add_patterns(session, folder, std::move(patterns));
    } catch (const Error& error) {
      session.problems.push_back(
          fmt::format("{} cannot be read and does not count: {}", part.folder, error.what()));
    }
  }
  drop_failed_samples(session);
  add_planned_cases(session, plan, "");
  drop_repeated(session, nodes_of_findings);
  if (cpus.size() == 1) session.host.cpu_model = *cpus.begin();
  session.host.node = nodes.size() == 1 ? *nodes.begin() : fmt::format("{} nodes", nodes.size());
}

/// Of a session that was not put together: all but what was measured.
void take_own_record(SessionData& session, SessionRecord&& record) {
  session.host = std::move(record.host);
  session.recording_costs =
      std::move(record.recording_costs).value_or(std::vector<RecordingCost>());
  session.tuned = std::move(record.tuned).value_or(std::vector<TunedKernel>());
  std::map<std::string, std::size_t> places;
  take_record(session, std::move(record), places);
}

/// What a session.json says of itself first.
SessionRecord begin_session(SessionData& session, const fs::path& folder) {
  session.folder = folder;
  SessionRecord record = read_session_record(folder);
  session.id = record.session_id.value_or(folder.filename().string());
  session.state = record.state;
  session.missing = std::move(record.missing);
  if (record.parts) session.parts = std::move(*record.parts);
  return record;
}

}  // namespace

SessionRecord read_session_record(const fs::path& folder) {
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

namespace {

SessionData read_own(const fs::path& folder, bool measured) {
  SessionData session;
  SessionRecord record = begin_session(session, folder);
  if (record.parts) {
    read_parts(session, Measured::read);
    return session;
  }
  const std::vector<PlanEntry> plan = std::move(record.plan);
  std::vector<PatternOrigin> patterns = std::move(record.patterns);
  const std::optional<PublishedSheets> published = std::move(record.published);
  take_own_record(session, std::move(record));
  RunsRead read;
  read.measured = measured;
  const bool could_read = read_runs(session, folder, std::move(read));
  drop_failed_samples(session);
  add_planned_cases(session, plan, could_read ? "" : "its records cannot be read");
  read_replays(session);
  read_patterns(session, folder, patterns);
  if (published) read_published(session, *published);
  return session;
}

}  // namespace

SessionData read_session(const fs::path& folder) {
  return read_own(folder, true);
}

SessionData read_session_runs(const fs::path& folder) {
  return read_own(folder, false);
}

void each_run_with_samples(const SessionData& session,
                           const std::function<void(const SessionData&)>& take) {
  std::map<RunId, std::vector<fs::path>> files;
  for (const RunInfo& run : session.runs) files[run].push_back(records_path(session, run));
  for (const auto& [key, attempts] : files) {
    SessionData one;
    one.id = session.id;
    one.folder = session.folder;
    RunsRead read;
    for (const fs::path& file : attempts) read_run(one, read, file);
    for (auto& [case_key, data] : one.cases) {
      const auto known = session.cases.find(case_key);
      if (known != session.cases.end()) data.outcomes = known->second.outcomes;
    }
    drop_failed_samples(one);
    take(one);
  }
}

SessionData read_session_facts(const fs::path& folder) {
  SessionData session;
  SessionRecord record = begin_session(session, folder);
  if (record.parts) {
    read_parts(session, Measured::leave);
  } else {
    take_own_record(session, std::move(record));
  }
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

Finding new_finding(FindingSource source,
                    std::string_view code,
                    Severity severity,
                    std::string subject,
                    std::string device) {
  Finding finding;
  finding.source = source;
  finding.code = code;
  finding.severity = severity;
  finding.subject = std::move(subject);
  finding.device = std::move(device);
  return finding;
}

}  // namespace launchgap
