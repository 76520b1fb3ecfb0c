// The records of a run, each with its fields: what writes one and what reads one use the same
// struct. docs/record-schema.md says what the fields mean. Samples have a form of their own
// (writer.h, reader.h), since there are so many.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/thread_events.h"
#include "harness/device/facts.h"
#include "harness/record/fields.h"

namespace launchgap {

/// How a run began.
struct RunBegin {
  std::string node;
  int attempt = 0;
  std::optional<int> side_by_side;
  std::string begin_utc;
  std::optional<std::int64_t>
      begin_ns;  // on the node's monotonic clock: the order in which runs began
  std::optional<long> pid;
};

/// How a run ended.
struct RunEnd {
  std::string status;  // of run_statuses()
  std::string reason;
  std::optional<double> duration_s;
  std::optional<int> other_processes;  // most seen at once on the device, besides this run's
  std::optional<std::int64_t> memory_kept_bytes;  // less free after the last case than before
  std::optional<std::string> memory_kept_by;      // the case during which most of it went
  std::map<std::string, std::string> telemetry_missing;  // why, by quantity
  std::optional<double> delay_ns;                        // that each call took longer, on purpose
  std::optional<std::string> delay_problem;              // why that is not what was asked for
};

/// Who measured, where, with what. The parent knows less of it than the worker.
struct RunRecord : RunBegin {
  static constexpr std::string_view kName = "run";
  std::string session_id;
  int replicate = 0;
  std::string arm;
  ProcessConfig process_config;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> cpus;
  DeviceFacts device;
  std::optional<std::string> kernel_form;
  std::optional<bool> jit;
  bool simulated = false;
  std::optional<std::map<std::string, std::string>> versions;
  std::optional<std::vector<LoadedLibrary>> libraries;
  std::optional<std::map<std::string, std::string>> environment;
  std::optional<std::map<std::string, std::string>> environment_removed;
  std::optional<std::string> trace_state;
  std::optional<Json> warm_up;
  std::optional<std::string> measured_under_tool;
  std::optional<Json> fingerprint;

  static void fields(auto& self, auto&& field) {
    field.write_only("session_id", self.session_id);
    field.optional("node", self.node);
    field.natural("replicate", self.replicate);
    field.optional("arm", self.arm);
    field.optional("process_config", self.process_config);
    field.formerly("setup", self.process_config);
    field.natural("attempt", self.attempt);
    field.write_only("seed", self.seed);
    field("side_by_side", self.side_by_side);
    field.optional("begin_utc", self.begin_utc);
    field("begin_ns", self.begin_ns);
    field("pid", self.pid);
    field("cpus", self.cpus);
    field("device", self.device);
    field("kernel_form", self.kernel_form);
    field("jit", self.jit);
    field.optional("simulated", self.simulated);
    field.write_only("versions", self.versions);
    field("libraries", self.libraries);
    field.write_only("environment", self.environment);
    field.write_only("environment_removed", self.environment_removed);
    field("trace_state", self.trace_state);
    field("warm_up", self.warm_up);
    field("measured_under_tool", self.measured_under_tool);
    field("fingerprint", self.fingerprint);
  }
};

/// What the counters of the device said between two blocks: after `block`, -1 before the first.
struct TelemetryRecord {
  static constexpr std::string_view kName = "telemetry";
  std::string case_name;
  int block = -1;
  std::int64_t at_ns = 0;
  std::map<std::string, double> values;  // by quantity

  static void fields(auto& self, auto&& field) {
    field.optional("case", self.case_name);
    field.optional("block", self.block);
    field.natural("at_ns", self.at_ns);
    field.optional("values", self.values);
  }
};

/// Something that went wrong: a call of a library, or the process.
struct EventRecord {
  static constexpr std::string_view kName = "event";
  std::string event;
  std::optional<std::string> case_name;
  std::int64_t at_ns = 0;
  std::optional<std::string> library;
  std::optional<std::string> call;
  std::optional<int> code;
  std::string message;
  std::optional<bool> sticky;

  static void fields(auto& self, auto&& field) {
    field("event", self.event);
    field("case", self.case_name);
    field.optional("at_ns", self.at_ns);
    field("library", self.library);
    field("call", self.call);
    field("code", self.code);
    field.optional("message", self.message);
    field("sticky", self.sticky);
  }
};

/// What became of a case.
struct SummaryRecord {
  static constexpr std::string_view kName = "summary";
  std::string case_name;
  Status status = Status::ok;
  std::string reason;
  std::optional<std::uint64_t> n;
  std::optional<std::string> method;
  std::optional<bool> steady;  // false: measured before the device was steady again
  std::optional<std::string> algorithm = {};

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("status", self.status);
    field("steady", self.steady);
    field.optional("reason", self.reason);
    field.write_only("n", self.n);
    field("method", self.method);
    field("algorithm", self.algorithm);
  }
};

/// What became of a run.
struct EndRecord : RunEnd {
  static constexpr std::string_view kName = "end";
  std::optional<bool> simulated;
  std::optional<std::vector<LoadedLibrary>> libraries;
  std::optional<std::map<std::string, std::string>> details;
  std::optional<Json> warm_up;
  std::optional<std::string> telemetry_problem;
  std::optional<std::string> kernel_form;
  std::optional<bool> jit;
  std::optional<Json> fingerprint;
  std::optional<std::string> written_by;

  static void fields(auto& self, auto&& field) {
    field.optional("status", self.status);
    field.optional("reason", self.reason);
    field("duration_s", self.duration_s);
    field("simulated", self.simulated);
    field("libraries", self.libraries);
    field.write_only("details", self.details);
    field("warm_up", self.warm_up);
    field("other_processes", self.other_processes);
    field("memory_kept_bytes", self.memory_kept_bytes);
    field("memory_kept_by", self.memory_kept_by);
    field.write_only("telemetry_problem", self.telemetry_problem);
    field.unless_empty("telemetry_missing", self.telemetry_missing);
    field("delay_ns", self.delay_ns);
    field("delay_problem", self.delay_problem);
    field("kernel_form", self.kernel_form);
    field("jit", self.jit);
    field("fingerprint", self.fingerprint);
    field.write_only("written_by", self.written_by);
  }
};

/// One of a case's slowest samples, beside which the events of its process were kept.
struct SlowSampleRecord {
  static constexpr std::string_view kName = "slow_sample";
  /// So many of a case in a run.
  static constexpr std::size_t kPerCase = 10;
  /// What happened so long before and after each is kept.
  static constexpr std::int64_t kAroundNs = 1'000'000;

  std::string case_name;
  int block = 0;
  std::uint64_t sample = 0;               // its number in the case and run, as in samples.csv
  std::string metric;                     // by which it is slow
  std::map<std::string, double> values;   // of the sample, by metric
  std::int64_t begin_ns = 0, end_ns = 0;  // on the clock of the events
  /// Kernels and copies that were asked for before it and had not begun when it began; where known.
  std::optional<std::uint64_t> waiting = {};
  /// Name of the file of events, where it is not that of these records.
  std::optional<std::string> events = {};

  /// By which it is slow; NaN if the record lacks it.
  double value() const {
    const auto found = values.find(metric);
    return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field.natural("block", self.block);
    field.natural("sample", self.sample);
    field("metric", self.metric);
    field("values", self.values);
    field("begin_ns", self.begin_ns);
    field("end_ns", self.end_ns);
    field("waiting", self.waiting);
    field("events", self.events);
  }
};

/// What the system did to the thread that launches, in a block of which a sample took longer than
/// usual; others have none.
struct ThreadEventsRecord {
  static constexpr std::string_view kName = "thread_events";
  std::string case_name;
  int block = 0;
  std::vector<WatchedSample> slow;  // by their place
  ThreadEvents usual;               // while the other samples were taken

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field.natural("block", self.block);
    field.optional("slow", self.slow);
    field.optional("usual", self.usual);
  }
};

/// Records of the file that were not taken, "calls that are in two rows".
struct LeftOutRecords {
  std::string what;
  std::uint64_t count = 0;

  static void fields(auto& self, auto&& field) {
    field("what", self.what);
    field("count", self.count);
  }
};

/// Where an imported run comes from, and how good its recording is: one process, on one GPU.
struct RecordingRecord {
  static constexpr std::string_view kName = "recording";
  std::string file;      // its name, without the folder
  std::string recorder;  // "Nsight Systems 2024.5.1"
  std::string form;      // "SQLite, schema 3.13.2"
  std::string clock;     // "Unix time"
  std::optional<std::uint64_t> pid;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> ranks;  // that the job has, recorded or not
  std::int64_t tick_ns = 1;
  /// The device's clock is ahead of the host's by so much, at least and at most, as far as causes
  /// come before effects.
  std::optional<std::int64_t> clock_ahead_least_ns, clock_ahead_most_ns;
  std::optional<double> clock_drift_ppm;
  /// Where they disagree and it is known: how far ahead it is at the first launch, give or take.
  std::optional<std::int64_t> clock_offset_ns;
  std::optional<double> clock_offset_error_ns;
  bool clock_corrected = false;  // whether the samples are on the host's clock for it
  std::string clock_problem;     // why launch latencies are missing; empty where they are not
  std::uint64_t calls = 0, threads = 0, streams = 0;
  /// What the program did with its allocator on this GPU; absent where nothing recorded that.
  std::optional<std::uint64_t> allocations, releases, failed_allocations;
  std::optional<std::uint64_t> unseen_releases;   // of what was allocated before it began
  std::optional<std::uint64_t> missing_releases;  // the address was allocated again
  std::optional<std::uint64_t> most_live_bytes, live_at_end_bytes;
  std::vector<LeftOutRecords> left_out;
  std::vector<std::string> remarks;

  static void fields(auto& self, auto&& field) {
    field.optional("file", self.file);
    field.optional("recorder", self.recorder);
    field.optional("form", self.form);
    field.optional("clock", self.clock);
    field("pid", self.pid);
    field("rank", self.rank);
    field("ranks", self.ranks);
    field.optional("tick_ns", self.tick_ns);
    field("clock_ahead_least_ns", self.clock_ahead_least_ns);
    field("clock_ahead_most_ns", self.clock_ahead_most_ns);
    field("clock_drift_ppm", self.clock_drift_ppm);
    field("clock_offset_ns", self.clock_offset_ns);
    field("clock_offset_error_ns", self.clock_offset_error_ns);
    field.optional("clock_corrected", self.clock_corrected);
    field.optional("clock_problem", self.clock_problem);
    field.optional("calls", self.calls);
    field.optional("threads", self.threads);
    field.optional("streams", self.streams);
    field("allocations", self.allocations);
    field("releases", self.releases);
    field("failed_allocations", self.failed_allocations);
    field("unseen_releases", self.unseen_releases);
    field("missing_releases", self.missing_releases);
    field("most_live_bytes", self.most_live_bytes);
    field("live_at_end_bytes", self.live_at_end_bytes);
    field.optional("left_out", self.left_out);
    field.optional("remarks", self.remarks);
  }
};

/// A line of a records file.
template <class Record>
Json record_to_json(const Record& record) {
  Json json = new_record(Record::kName);
  add_fields(json, record);
  return json;
}

}  // namespace launchgap
