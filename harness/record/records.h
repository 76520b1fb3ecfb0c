// The records of a run, each with its fields: what writes one and what reads one use the same
// struct. docs/record-schema.md says what the fields mean. Samples have a form of their own
// (writer.h, reader.h), since there are so many.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// A line of a records file.
template <class Record>
Json record_to_json(const Record& record) {
  Json json = new_record(Record::kName);
  add_fields(json, record);
  return json;
}

}  // namespace launchgap
