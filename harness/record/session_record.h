// session.json as a record with its fields. docs/record-schema.md says what they mean.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/core/pattern.h"
#include "harness/core/printable.h"
#include "harness/device/facts.h"
#include "harness/record/fields.h"

namespace launchgap {

/// The machine around the devices.
struct HostFacts {
  std::string node;                       // its name to the scheduler, else in the network
  std::optional<std::string> machine_id;  // a digest of /etc/machine-id: tells machines of one name
  std::string os, kernel, cpu_model;
  std::uint64_t cores = 0;         // that this process may use
  std::uint64_t memory_bytes = 0;  // of the machine
  std::optional<std::string> governor;
  std::optional<int> numa_nodes;

  static void fields(auto& self, auto&& field) {
    field.optional("node", self.node);
    field("machine_id", self.machine_id);
    field.write_only("os", self.os);
    field.write_only("kernel", self.kernel);
    field.optional("cpu_model", self.cpu_model);
    field.optional("cores", self.cores);
    field.write_only("memory_bytes", self.memory_bytes);
    field.write_only("governor", self.governor);
    field.write_only("numa_nodes", self.numa_nodes);
  }
};

/// Of a process that a scheduler or MPI started as one of several: which it is.
struct RankFacts {
  std::string launcher;  // "Slurm", "Open MPI", "MPI" (another with PMI) or "Kubernetes"
  int rank = 0;
  std::optional<int> ranks;                    // that were started together, on all nodes
  std::optional<int> local_rank, local_ranks;  // those of this node
  std::string cluster, job;                    // the job's number; empty: not known
  std::optional<int> array_task;               // of an array of jobs
  std::string step;                            // of the job
  std::optional<int> restarts;                 // how often the scheduler began the job again
  std::string nodes;                           // of the job, in the scheduler's short form

  static void fields(auto& self, auto&& field) {
    field("launcher", self.launcher);
    field.natural("rank", self.rank);
    field("ranks", self.ranks);
    field("local_rank", self.local_rank);
    field("local_ranks", self.local_ranks);
    field.unless_empty("cluster", self.cluster);
    field.unless_empty("job", self.job);
    field("array_task", self.array_task);
    field.unless_empty("step", self.step);
    field("restarts", self.restarts);
    field.unless_empty("nodes", self.nodes);
  }
};

/// A run of the plan.
struct PlanEntry {
  std::string device;  // UUID
  int replicate = 0;
  std::string arm = "plain";
  ProcessConfig process_config;
  std::vector<std::string> cases;

  static void fields(auto& self, auto&& field) {
    field.optional("device", self.device);
    field.optional("replicate", self.replicate);
    field.optional("arm", self.arm);
    field.optional("process_config", self.process_config);
    field.formerly("setup", self.process_config);
    field.optional("cases", self.cases);
  }
};

/// The file with the records of a planned run on `device`, a GPU's UUID or a backend; `attempt` 0
/// is the first.
inline std::string records_file_name(const std::string& node,
                                     const std::string& device,
                                     const PlanEntry& run,
                                     int attempt) {
  return file_name_part(fmt::format("{}.{}.r{}.{}.{}{}.jsonl",
                                    node,
                                    device,
                                    run.replicate,
                                    run.arm,
                                    run.process_config.text(),
                                    attempt == 0 ? "" : fmt::format(".{}", attempt)));
}

/// How long a fresh process takes to open a GPU, with the keeper and without.
struct Initialisation {
  std::string device_id;
  std::optional<double> first_ms, again_ms, with_keeper_ms;
  std::optional<bool> keeper;  // whether it stayed
  std::optional<std::string> error;

  static void fields(auto& self, auto&& field) {
    field("device_id", self.device_id);
    field("first_ms", self.first_ms);
    field("again_ms", self.again_ms);
    field("with_keeper_ms", self.with_keeper_ms);
    field("keeper", self.keeper);
    field("error", self.error);
  }
};

struct StateAndReason {
  std::string state, reason;

  static void fields(auto& self, auto&& field) {
    field("state", self.state);
    field("reason", self.reason);
  }
};

struct BuildFacts {
  std::string type, compiler, git;

  static void fields(auto& self, auto&& field) {
    field("type", self.type);
    field("compiler", self.compiler);
    field("git", self.git);
  }
};

struct Note {
  std::string severity = "info", text;

  static void fields(auto& self, auto&& field) {
    field("severity", self.severity);
    field("text", self.text);
  }
};

/// What a session was made to tell more of.
struct Investigates {
  std::string session_id;
  std::optional<std::string> case_name;

  static void fields(auto& self, auto&& field) {
    field("session_id", self.session_id);
    field("case", self.case_name);
  }
};

/// The times of one kernel's configurations on one GPU, as a tuner measured them.
struct TunedKernel {
  std::string device;  // UUID
  std::string kernel, problem;
  std::vector<std::string> parameters;
  std::string file;  // in tuning/

  static void fields(auto& self, auto&& field) {
    field("device", self.device);
    field("kernel", self.kernel);
    field("problem", self.problem);
    field("parameters", self.parameters);
    field("file", self.file);
  }
};

/// Where a value was published, and what it was measured with.
struct PublishedOrigin {
  std::string source, licence;
  std::string software;   // "cuBLAS 7.5"; empty: not known
  std::string algorithm;  // one of algorithm_names(), or empty
  auto operator<=>(const PublishedOrigin&) const = default;

  static void fields(auto& self, auto&& field) {
    field("source", self.source);
    field("licence", self.licence);
    field.optional("software", self.software);
    field.optional("algorithm", self.algorithm);
  }
};

/// What others have published of one GPU.
struct PublishedFile {
  std::string device;        // UUID
  std::string cuda, driver;  // empty: not known
  std::string file;          // in published/

  static void fields(auto& self, auto&& field) {
    field("device", self.device);
    field.optional("cuda", self.cuda);
    field.optional("driver", self.driver);
    field("file", self.file);
  }
};

/// So many published values are cases of their session, with tables, cliffs and a page of their
/// own. More than these stay values, which the comparison of GPUs counts, and nothing else.
inline constexpr std::size_t kMostPublishedCases = 50'000;

/// Values that others have published.
struct PublishedSheets {
  std::vector<PublishedOrigin> origins;
  std::vector<PublishedFile> files;

  static void fields(auto& self, auto&& field) {
    field("origins", self.origins);
    field("files", self.files);
  }
};

/// What recording at a level adds to a program, by starts with and without it in turns: medians of
/// their differences, and 95 % intervals of these.
struct RecordingCost {
  std::string level;
  int rounds = 0;
  double plain_wall_s = 0;  // the median start without
  double wall_s = 0;        // added to a start as a whole
  std::optional<double> wall_low_s, wall_high_s;
  std::uint64_t calls = 0;  // that a start has recorded
  /// Added to each recorded call, of the time between the driver's initialisation and the program's
  /// end; absent where a process had no end that it could tell, where threads call at once, or
  /// where no call is recorded.
  std::optional<double> call_ns, call_low_ns, call_high_ns;

  static void fields(auto& self, auto&& field) {
    field("level", self.level);
    field("rounds", self.rounds);
    field("plain_wall_s", self.plain_wall_s);
    field("wall_s", self.wall_s);
    field("wall_low_s", self.wall_low_s);
    field("wall_high_s", self.wall_high_s);
    field("calls", self.calls);
    field("call_ns", self.call_ns);
    field("call_low_ns", self.call_low_ns);
    field("call_high_ns", self.call_high_ns);
  }
};

/// One of the sessions that are put together in another.
struct SessionPart {
  std::string folder;      // as seen from that other's
  std::string session_id;  // as it is called there, and no other is
  std::string node, state, begin_utc;
  std::optional<RankFacts> rank;
  std::vector<std::string> devices;  // UUIDs
  std::string left_out;              // why it does not count; else empty

  static void fields(auto& self, auto&& field) {
    field("folder", self.folder);
    field("session_id", self.session_id);
    field("node", self.node);
    field("state", self.state);
    field("begin_utc", self.begin_utc);
    field("rank", self.rank);
    field("devices", self.devices);
    field.unless_empty("left_out", self.left_out);
  }
};

/// What was to be measured and is not there, or not whole.
struct MissingPart {
  std::string node, device;  // empty: not known
  std::string reason;        // a sentence without its full stop
  auto operator<=>(const MissingPart&) const = default;

  static void fields(auto& self, auto&& field) {
    field("node", self.node);
    field("device", self.device);
    field("reason", self.reason);
  }
};

struct SessionRecord {
  static constexpr std::string_view kName = "session";
  std::optional<std::string> session_id;
  std::optional<std::string> source;  // "published": by others, and nothing was measured
  std::string begin_utc;
  std::optional<std::string> end_utc;
  std::string state;  // "running", then "complete" or "stopped"
  std::vector<std::string> command_line;
  std::uint64_t seed = 0;
  Profile profile = Profile::quick;
  int runs = 0;               // of each device and process configuration
  bool random_order = false;  // of the cases, in each process another one
  std::string filter;
  StateAndReason tracing;
  std::string launchgap_version;
  BuildFacts build;
  HostFacts host;
  std::optional<RankFacts> rank;  // of a process that is one of several
  std::optional<Json> doctor;     // what it found before, in its own form
  std::vector<Note> notes;
  std::vector<PlanEntry> plan;
  std::vector<DeviceFacts> devices;
  std::optional<std::vector<Initialisation>> initialisation;
  std::optional<Investigates> investigates;
  std::optional<std::vector<RecordingCost>> recording_costs;
  std::optional<std::vector<TunedKernel>> tuned;  // of a session of tuners' files
  std::optional<PublishedSheets> published;       // of one of published tables
  std::vector<PatternOrigin> patterns;            // that were measured; patterns/<name>.csv
  std::optional<std::vector<SessionPart>> parts;  // of sessions that are together in this one
  std::vector<MissingPart> missing;               // of these

  static void fields(auto& self, auto&& field) {
    field("session_id", self.session_id);
    field("source", self.source);
    field.optional("begin_utc", self.begin_utc);
    field("end_utc", self.end_utc);
    field.optional("state", self.state);
    field.write_only("command_line", self.command_line);
    field.optional("seed", self.seed);
    field.write_only("profile", self.profile);
    field.write_only("runs", self.runs);
    field.optional("random_order", self.random_order);
    field.optional("filter", self.filter);
    field.optional("tracing", self.tracing);
    field.optional("launchgap_version", self.launchgap_version);
    field.write_only("build", self.build);
    field.optional("host", self.host);
    field("rank", self.rank);
    field.write_only("doctor", self.doctor);
    field.optional("notes", self.notes);
    field.optional("plan", self.plan);
    field.optional("devices", self.devices);
    field.write_only("initialisation", self.initialisation);
    field.write_only("investigates", self.investigates);
    field("recording_costs", self.recording_costs);
    field("tuned", self.tuned);
    field("published", self.published);
    field.unless_empty("patterns", self.patterns);
    field("parts", self.parts);
    field.unless_empty("missing", self.missing);
  }
};

}  // namespace launchgap
