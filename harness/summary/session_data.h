// A session's files, read into memory: what was planned, what ran, and every sample by case and
// run.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/case_name.h"
#include "harness/core/choice.h"
#include "harness/core/device_skew.h"
#include "harness/core/finding.h"
#include "harness/core/metric.h"
#include "harness/core/process_config.h"
#include "harness/core/result_bits.h"
#include "harness/record/job_record.h"
#include "harness/record/reader.h"
#include "harness/record/records.h"
#include "harness/record/replay_record.h"
#include "harness/record/schema.h"
#include "harness/record/session_record.h"
#include "harness/record/trace_record.h"

namespace launchgap {

/// Which process it was, whichever attempt of it.
struct RunId {
  std::string device;  // UUID
  std::string arm;
  ProcessConfig process_config;
  int replicate = 0;
  auto operator<=>(const RunId&) const = default;

  const RunId& id() const { return *this; }
};

/// A case in one process.
struct CaseRun {
  RunId run;
  std::string case_name;
  auto operator<=>(const CaseRun&) const = default;
};

/// One worker process, from its `run` and `end` records; without an `end` it is incomplete.
struct RunInfo : RunId, RunBegin, RunEnd {
  std::string file;  // name of the records file, as seen from the folder of records
  std::string cpus;
  std::string kernel_form;
  std::optional<bool> jit;
  bool simulated = false;
  std::string trace_state;                  // "off", "ok", or why the run was not traced
  std::string measured_under_tool;          // a profiler or debugger that watched the process
  std::optional<bool> steady;               // when measuring began; absent where nothing warmed up
  std::vector<std::string> restless_cases;  // that began before the device was steady again
  int cases_ok = 0;
  int cases_failed = 0;
  std::vector<LoadedLibrary> libraries;
  Json fingerprint = Json::object();  // what must be equal for two results to be comparable

  // Only what identifies it is compared: id().
  bool operator==(const RunInfo&) const = delete;
  auto operator<=>(const RunInfo&) const = delete;
};

/// What happened to one case in one run.
struct CaseOutcome {
  std::optional<Status> status;  // absent if the run ended before the case did
  std::string reason;
};

/// Identifies a row of the summary: everything but the metric.
struct CaseKey {
  std::string device;
  std::string arm;
  ProcessConfig process_config;
  CaseName name;
  auto operator<=>(const CaseKey&) const = default;

  CaseRun in_run(int replicate) const {
    return {{device, arm, process_config, replicate}, name.text()};
  }
};

/// One block of samples, in the order of `CaseData::samples`.
struct BlockInfo {
  int replicate = 0;
  int block = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::map<std::string, std::size_t> counts;  // samples that it has, by metric
};

/// One reading of telemetry, between blocks.
struct TelemetryInfo : TelemetryRecord, RunId {};

/// A record of a run, and which run that is.
template <class Record>
struct OfRun : RunId {
  Record record;
};

/// What tracing had to say: of a run as a whole, or of one of its cases.
using TraceInfo = OfRun<TraceRecord>;
/// Where an imported run comes from.
using RecordingInfo = OfRun<RecordingRecord>;
/// What the system did to the launching thread in one block.
using ThreadEventsInfo = OfRun<ThreadEventsRecord>;
/// What the events of an imported run say beyond its samples.
using JobInfo = OfRun<JobRecord>;
/// A way in which a library could compute a case, and what came of it.
using ChoiceInfo = OfRun<Choice>;
/// What one process found of the bits of a case's results.
using BitsInfo = OfRun<ResultBits>;
/// When each of several devices was ready with its steps, in one process; of the first of them.
using SkewInfo = OfRun<DeviceSkew>;

/// One of a case's slowest samples in a run.
struct SlowSampleInfo : OfRun<SlowSampleRecord> {
  std::string events;  // name of the file of events, as seen from the folder of events
};

/// A replay of allocations that is kept in the session.
struct ReplayInfo {
  std::string file;  // name of the file in replays/
  ReplayRecord record;
};

struct CaseData {
  std::string method;
  std::map<int, CaseOutcome> outcomes;    // by replicate
  std::map<int, std::string> algorithms;  // the same; only where the library told
  /// Samples in order, by metric and replicate; only of runs in which the case was not failed or
  /// invalid.
  std::map<std::string, std::map<int, std::vector<double>>> samples;
  std::vector<std::string> metric_order;
  std::vector<BlockInfo> blocks;  // by replicate, in the order in which they were measured

  /// The samples of a metric, of one run or of all; none where there are none.
  std::span<const double> of_run(const std::string& metric, int replicate) const;
  std::vector<double> of_all_runs(const std::string& metric) const;
};

/// A value that others have published, of a case that is no case of the session.
struct PublishedValue {
  CaseName name;
  const Metric* metric = nullptr;
  double value = 0;
  std::uint32_t origin = 0;  // of SessionData::origins
};

/// Those of one GPU, by case and metric.
struct PublishedValues {
  std::string device;  // UUID
  std::vector<PublishedValue> values;
};

struct SessionData {
  std::filesystem::path folder;
  HostFacts host;
  std::string id;
  std::string state;            // running, complete or stopped; empty where it is not told
  StateAndReason tracing;       // found out when it was planned
  bool random_order = false;    // of the cases, in each process another one
  std::vector<Note> notes;      // what could not be looked at
  std::vector<Finding> doctor;  // what the doctor found before
  std::vector<DeviceFacts> devices;
  std::vector<RunInfo> runs;
  std::map<CaseKey, CaseData> cases;
  std::vector<TelemetryInfo> telemetry;
  std::vector<ChoiceInfo> choices;
  std::vector<BitsInfo> bits;
  std::vector<SkewInfo> skews;
  std::vector<TraceInfo> traces;
  std::vector<RecordingInfo> recordings;
  std::vector<SlowSampleInfo> slow_samples;
  std::vector<ThreadEventsInfo> thread_events;
  std::vector<JobInfo> jobs;
  std::vector<ReplayInfo> replays;
  std::vector<RecordingCost> recording_costs;
  std::vector<Pattern> patterns;             // recorded steps that were done again
  std::vector<TunedKernel> tuned;            // whose times are in tuning/
  std::vector<PublishedOrigin> origins;      // of published values
  std::vector<PublishedValues> published;    // that are too many to be cases
  std::vector<SessionPart> parts;            // of sessions that are together in this one
  std::vector<MissingPart> missing;          // what is missing of these
  std::map<std::string, std::string> nodes;  // of these, by device
  std::set<std::string> unended;             // folders of these that say that they still run
  std::vector<std::string> problems;         // one line each: what could not be read

  const DeviceFacts* device(const std::string& uuid) const;
  /// The machine that has a device: of sessions that are together each has its own.
  const std::string& node_of(const std::string& uuid) const;
  /// Whether some of its runs are of this arm: those of an import are "recorded" or "published".
  bool has_arm(std::string_view arm) const;

 private:
  mutable std::map<std::string, std::size_t> places_;  // of the devices, once they were looked for
};

/// Where the records of a run are, and the events of a slow sample.
std::filesystem::path records_path(const SessionData& session, const RunInfo& run);
std::filesystem::path events_path(const SessionData& session, const SlowSampleInfo& sample);

/// What was read of telemetry during each case, in the order of time.
std::map<CaseRun, std::vector<const TelemetryInfo*>> telemetry_by_case(const SessionData& session);

/// The metrics of a block by the keys that they have now, whichever version wrote it.
void use_current_keys(SampleBlock& block);

/// The session.json of a folder. Throws UsageError if the folder is not a session's, and Error,
/// which names the file, for what cannot be read.
SessionRecord read_session_record(const std::filesystem::path& folder);

/// Reads a session, whole or not; of sessions that were put together all that count, as one: what
/// several of them have of a device are replicates. Throws as read_session_record().
SessionData read_session(const std::filesystem::path& folder);

/// The same without what was measured, and so without cases and runs: the devices, what the doctor
/// found, and of sessions that were put together which they are and what is missing.
SessionData read_session_facts(const std::filesystem::path& folder);

/// The same without what its runs measured: its cases have outcomes, and nothing else. Not of
/// sessions that were put together.
SessionData read_session_runs(const std::filesystem::path& folder);

/// What each run of such a session measured, one after the other, so that the samples of one run
/// alone are in memory: `take` gets a session of that run, with the cases that gave a result.
void each_run_with_samples(const SessionData& session,
                           const std::function<void(const SessionData&)>& take);

// --- The replays of allocations that a session has kept ---

/// Reads replays/*.json of the session's folder, by name. A file that cannot be read becomes a
/// problem of the session.
void read_replays(SessionData& session);

/// A finding, without what is found.
Finding new_finding(FindingSource source,
                    std::string_view code,
                    Severity severity,
                    std::string subject,
                    std::string device = "");

}  // namespace launchgap
