// What a worker is asked to do: a task and what it needs, as one JSON object on its standard input.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/record/fields.h"

namespace launchgap {

/// A case that a run leaves out, and why.
struct SkippedCase {
  std::string case_name;
  std::string reason;

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("reason", self.reason);
  }
};

namespace job {

/// Lists the devices of a backend, or the one GPU with an index.
struct Probe {
  static constexpr std::string_view kName = "probe";
  std::string backend;
  std::optional<int> index;

  static void fields(auto& self, auto&& field) {
    field("backend", self.backend);
    field("index", self.index);
  }
};

/// Opens a device once and says how long that took.
struct Initialise {
  static constexpr std::string_view kName = "initialise";
  std::string backend;
  std::string uuid;

  static void fields(auto& self, auto&& field) {
    field("backend", self.backend);
    field("uuid", self.uuid);
  }
};

/// Compiles the portable kernels into a cache for later processes.
struct WarmJitCache {
  static constexpr std::string_view kName = "warm-jit-cache";
  std::string backend;
  std::string uuid;
  ProcessConfig process_config;
  std::filesystem::path jit_cache;

  static void fields(auto& self, auto&& field) {
    field("backend", self.backend);
    field("uuid", self.uuid);
    field("process_config", self.process_config);
    field("jit_cache", self.jit_cache);
  }
};

/// Says whether CUPTI can be loaded.
struct FindTracing {
  static constexpr std::string_view kName = "find-tracing";
  static void fields(auto&, auto&&) {}
};

/// Keeps the driver open until it is killed.
struct HoldDriverOpen {
  static constexpr std::string_view kName = "keep";
  std::string backend;

  static void fields(auto& self, auto&& field) { field("backend", self.backend); }
};

/// Measures cases on a device and records them.
struct Run {
  static constexpr std::string_view kName = "run";
  std::string backend;
  std::string uuid;
  std::string session_id;
  std::string node;
  int replicate = 0;
  Arm arm = Arm::plain;
  ProcessConfig process_config;
  int attempt = 0;
  bool trace_required = false;  // what cannot be traced has failed
  bool keep_events = false;     // all, and not only those around slow samples
  std::uint64_t seed = 0;
  Profile profile = Profile::quick;
  int side_by_side = 1;  // runs at once
  CpuList cpus;          // for the launching thread
  CpuList near_cpus;     // near the device, for the rest of the process
  std::filesystem::path records;
  Json fingerprint = Json::object();  // what of it the parent knows
  std::vector<std::string> cases;
  std::vector<SkippedCase> skipped;
  std::filesystem::path jit_cache;    // of CodeLoading::jit_cached; else empty
  std::optional<std::string> tool;    // that the session is known to run under
  std::vector<std::string> patterns;  // files of the session; empty: those that ship

  static void fields(auto& self, auto&& field) {
    field("backend", self.backend);
    field("uuid", self.uuid);
    field("session_id", self.session_id);
    field("node", self.node);
    field("replicate", self.replicate);
    field("arm", self.arm);
    field("process_config", self.process_config);
    field("attempt", self.attempt);
    field("trace_required", self.trace_required);
    field("keep_events", self.keep_events);
    field("seed", self.seed);
    field("profile", self.profile);
    field("side_by_side", self.side_by_side);
    field("cpus", self.cpus);
    field("near_cpus", self.near_cpus);
    field("records", self.records);
    field("fingerprint", self.fingerprint);
    field("cases", self.cases);
    field("skipped", self.skipped);
    field("jit_cache", self.jit_cache);
    field("tool", self.tool);
    field.optional("patterns", self.patterns);
  }
};

}  // namespace job

using Job = std::variant<job::Probe,
                         job::Initialise,
                         job::WarmJitCache,
                         job::FindTracing,
                         job::HoldDriverOpen,
                         job::Run>;

Json to_json(const Job& job);
/// Throws UsageError for a task that there is not, and Error that names a field that is wrong.
Job job_from_json(const Json& json);

// --- What tells a process's samples of a case from others: the payload of their NVTX ranges ---

/// Of a worker process, among those of all sessions:
/// "20261120T103455Z-783dd3/vm.host.r0.plain.launch".
std::string run_name(const job::Run& job);

/// The key of the first sample of a case in a run; the i-th has this and i. 31 bits come from both
/// names, and 32 count samples: the last bit stays zero, since SQLite's integers have a sign.
std::uint64_t first_sample_key(std::string_view run_name, std::string_view case_name);

}  // namespace launchgap
