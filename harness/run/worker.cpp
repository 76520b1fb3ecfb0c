#include "harness/run/worker.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/core/version.h"
#include "harness/measure/loop.h"
#include "harness/measure/nvtx.h"
#include "harness/measure/steady.h"
#include "harness/measure/telemetry.h"
#include "harness/measure/warm_up.h"
#include "harness/record/writer.h"
#include "harness/run/process.h"
#include "harness/run/run_tracing.h"
#include "harness/run/settings.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

Json probe(const Json& job) {
  Json devices = Json::array();
  ProbeOptions options;
  options.index = maybe<int>(job, "index");
  options.found = [](int count) { send_message({{"found", count}}); };
  options.asking = [](const char* call) { send_message({{"asking", call}}); };
  for (const DeviceFacts& facts : probe_devices(job.at("backend").get<std::string>(), options))
    devices.push_back(to_json(facts));
  return {{"devices", devices}};
}

std::unique_ptr<Device> open_device_of(const Json& job) {
  return open_device(
      job.at("backend").get<std::string>(),
      job.at("uuid").get<std::string>(),
      open_options(job.value("setup", ""), path_of_text(job.value("jit_cache", ""))));
}

/// Has the driver compile what a later process is to find in its cache.
Json warm_jit_cache(const Json& job) {
  const std::unique_ptr<Device> device = open_device_of(job);
  for (const KernelDescription* kernel : kernels::all_kernels()) {
    if (kernel->native_from == 0) device->load(*kernel);
  }
  return {{"warmed", true}};
}

/// Whether a job's process has nothing to do but its one sample.
bool is_fresh_process(const Json& job) {
  return std::ranges::any_of(job.at("cases"), [](const Json& entry) {
    return benchmark_of(CaseName::parse(entry.get<std::string>())).fresh_process;
  });
}

Arm arm_of(const Json& job) {
  return job.at("arm") == name_of(Arm::traced) ? Arm::traced : Arm::plain;
}

Json initialise(const Json& job) {
  const std::int64_t begin = now_ns();
  const std::unique_ptr<Device> device = open_device_of(job);
  return {{"initialise_ms", static_cast<double>(now_ns() - begin) * 1e-6},
          {"free_memory_bytes", device->free_memory_bytes()}};
}

/// Removes what falsifies, before a library reads it; returns what was removed, with its value.
Json remove_falsifying_variables() {
  Json removed = Json::object();
  for (const FalsifyingVariable& variable : falsifying_variables()) {
    const char* const value = std::getenv(variable.name);
    if (!value) continue;
    removed[variable.name] = value;
    unsetenv(variable.name);
  }
  return removed;
}

/// Opens the device from CPUs near it: the driver puts its own memory on the node of the thread
/// that makes the context. Its threads inherit that, and no more.
std::unique_ptr<Device> open_near_device(const Json& job) {
  bind_thread(parse_cpu_list(job.value("near_cpus", "")));
  return open_device_of(job);
}

/// Variables that change what the libraries below do, as they are set here.
Json environment_of_libraries() {
  constexpr std::string_view kPrefixes[] = {"CUDA_",
                                            "CUBLAS",
                                            "CUDNN_",
                                            "NVIDIA_",
                                            "OMP_",
                                            "GOMP_",
                                            "KMP_",
                                            "OPENBLAS_",
                                            "DNNL_",
                                            "ONEDNN_",
                                            "MALLOC_",
                                            "GLIBC_TUNABLES",
                                            "LD_PRELOAD",
                                            "LAUNCHGAP_KERNELS",
                                            "LAUNCHGAP_WARM_UP"};
  Json found = Json::object();
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool chosen_by_parent = name == "CUDA_VISIBLE_DEVICES";
    if (!chosen_by_parent && std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
          return name.starts_with(prefix);
        })) {
      found[std::string(name)] = text.substr(std::min(text.size(), name.size() + 1));
    }
  }
  return found;
}

/// Variables that say where things are or what a container may see: recorded, and no reason not to
/// compare.
bool is_a_place(const std::string& name) {
  return name.ends_with("_HOME") || name.ends_with("_PATH") || name.starts_with("NVIDIA_");
}

/// LAUNCHGAP_WARM_UP=off is for tests of everything but times; it is part of the fingerprint.
bool wants_warm_up() {
  const char* const wanted = std::getenv("LAUNCHGAP_WARM_UP");
  if (!wanted || !*wanted || std::string_view(wanted) == "on") return true;
  if (std::string_view(wanted) == "off") return false;
  throw UsageError(fmt::format("LAUNCHGAP_WARM_UP is '{}': it can be on or off", wanted));
}

/// What happened to a case, and whether the process is of further use.
struct Outcome {
  Status status = Status::ok;
  std::string reason;
  std::string method;
  std::uint64_t samples = 0;
  bool sticky = false;
};

class Run {
 public:
  explicit Run(const Json& job)
      : job_(job),
        begin_ns_(now_ns()),
        removed_variables_(remove_falsifying_variables()),
        profile_(parse_profile(job.at("profile").get<std::string>())),
        tracing_(job.at("backend").get<std::string>(),
                 arm_of(job),
                 trace_level_of(job.at("setup").get<std::string>())),
        device_(open_near_device(job)),
        writer_(RecordWriter::create(path_of_text(job.at("records").get<std::string>()))) {
    // Only now, so that the threads of driver and libraries are free to run elsewhere on the node.
    const CpuList cpus = parse_cpu_list(job.at("cpus").get<std::string>());
    const bool bound = bind_thread(cpus);
    Json record = new_record("run");
    for (const char* key :
         {"session_id", "node", "replicate", "arm", "setup", "attempt", "seed", "side_by_side"}) {
      record[key] = job.at(key);
    }
    record["begin_utc"] = utc_now();
    record["begin_ns"] = begin_ns_;
    record["pid"] = getpid();
    record["cpus"] = bound ? cpu_list_text(cpus) : cpu_list_text(allowed_cpus());
    record["device"] = to_json(device_->facts());
    // A process whose first launch is measured must not have loaded anything before.
    fresh_ = is_fresh_process(job);
    if (!fresh_) describe_kernels(record);
    record["simulated"] = simulated();
    record["versions"] = {{"launchgap", kVersion}, {"git", kGitRevision}, {"compiler", kCompiler}};
    record["libraries"] = libraries();
    fingerprint_ = job.at("fingerprint");
    note_kernels(record);
    for (const char* key : {"wait", "module_loading", "ecc", "compute_mode"}) {
      const auto& details = device_->facts().details;
      if (const auto found = details.find(key); found != details.end())
        fingerprint_[key] = found->second;
    }
    record["environment"] = environment_of_libraries();
    record["environment_removed"] = removed_variables_;
    fingerprint_["environment"] = Json::object();
    for (const auto& [name, value] : record["environment"].items()) {
      if (!is_a_place(name)) fingerprint_["environment"][name] = value;
    }
    telemetry_ = std::make_unique<Telemetry>(device_->facts());
    tracing_.prove(*device_);
    record["trace_state"] = tracing_.state();
    if (!fresh_ && wants_warm_up()) record["warm_up"] = warm_up_record();
    if (const auto tool = watching_tool(arm_of(job)))
      fingerprint_["measured_under_tool"] = record["measured_under_tool"] = *tool;
    record["fingerprint"] = fingerprint_;
    writer_.write(record);
    if (tracing_.wanted()) writer_.write(tracing_.record());
  }

  void measure_all() {
    std::string status = "ok", reason;
    bool any_failed = false, sticky = false;
    for (const Json& skipped : job_.value("skipped", Json::array())) {
      write_summary(CaseName::parse(skipped.at("case").get<std::string>()),
                    {Status::skipped, skipped.at("reason").get<std::string>(), "", 0, false});
    }
    for (const Json& entry : job_.at("cases")) {
      const CaseName name = CaseName::parse(entry.get<std::string>());
      send_message({{"begin", name.text()}});
      const Outcome outcome = tracing_.problem() ? untraceable(*tracing_.problem()) : measure(name);
      any_failed =
          any_failed || outcome.status == Status::failed || outcome.status == Status::invalid;
      write_summary(name, outcome);
      send_message({{"end", name.text()},
                    {"status", name_of(outcome.status)},
                    {"reason", outcome.reason},
                    {"sticky", outcome.sticky}});
      if (outcome.sticky) {
        reason = outcome.reason;
        sticky = true;
        break;
      }
    }
    if (any_failed) status = "failed";
    if (any_failed && reason.empty()) reason = "a case failed";
    Json end = new_record("end");
    end["status"] = status;
    end["reason"] = reason;
    end["duration_s"] = static_cast<double>(now_ns() - begin_ns_) * 1e-9;
    end["simulated"] = simulated();
    end["libraries"] = libraries();
    end["details"] = device_->facts().details;
    if (warmth_) {
      end["warm_up"] = {{"steady", warmth_->result().steady},
                        {"seconds", warmth_->result().seconds},
                        {"rounds", warmth_->result().rounds}};
    }
    if (other_processes_) end["other_processes"] = *other_processes_;
    if (!telemetry_->device_problem().empty())
      end["telemetry_problem"] = telemetry_->device_problem();
    if (fresh_ && !sticky) {
      describe_kernels(end);
      note_kernels(end);
    }
    // Libraries are loaded by the cases that need them, so only now are their versions known.
    for (const LoadedLibrary& library : all_libraries())
      fingerprint_[library.name] = library.version;
    end["fingerprint"] = fingerprint_;
    writer_.write(end);
    // With a context that is lost, tearing down can crash or hang, and so it can with a tracer in
    // the process (pytorch/kineto#686), even to stop it; everything is written.
    if (sticky || process_is_traced()) std::_Exit(0);
  }

 private:
  /// Warms up, and says what that came to; null where nothing can be launched.
  Json warm_up_record() {
    try {
      warmth_ = std::make_unique<Warmth>(
          *device_,
          [this]() -> std::optional<double> {
            for (const auto& [key, value] : telemetry_->read().values) {
              if (key == "sm_clock_mhz") return value;
            }
            return std::nullopt;
          },
          [this] { tracing_.discard(); });
    } catch (const Unsupported&) {
      return nullptr;
    }
    warmth_->warm_up();
    const WarmUp& result = warmth_->result();
    Json record = {{"steady", result.steady},
                   {"seconds", result.seconds},
                   {"rounds", result.rounds},
                   {"api_ns", result.last.call_ns},
                   {"roundtrip_ns", result.last.roundtrip_ns}};
    if (result.last.clock_mhz) record["sm_clock_mhz"] = *result.last.clock_mhz;
    return record;
  }

  Outcome measure(const CaseName& name) {
    Outcome outcome;
    const nvtx::Name range_name(name.text());
    const nvtx::Range range(range_name);
    try {
      measure_into(name, outcome);
    } catch (const Unsupported& error) {
      outcome = {Status::unsupported, error.what(), "", 0, false};
    } catch (const TraceUnavailable& problem) {
      outcome = untraceable(problem);
    } catch (const WriteError&) {
      throw;  // the disk's fault, and not the case's
    } catch (const InvalidMeasurement& error) {
      outcome = {Status::invalid, error.what(), outcome.method, outcome.samples, false};
    } catch (const LibraryError& error) {
      write_event(name, error);
      outcome = {Status::failed, error.what(), outcome.method, outcome.samples, error.sticky()};
    } catch (const std::bad_alloc&) {
      outcome = {
          Status::failed, "the host has no memory left", outcome.method, outcome.samples, false};
    } catch (const std::exception& error) {
      outcome = {Status::failed, error.what(), outcome.method, outcome.samples, false};
    }
    // Work whose error nobody waited for belongs to this case and not to the next one; and after a
    // failure, only the driver knows whether the device can still be used.
    try {
      device_->check();
    } catch (const LibraryError& error) {
      write_event(name, error);
      if (outcome.status != Status::failed) outcome.reason = error.what();
      outcome.status = Status::failed;
      outcome.sticky = outcome.sticky || error.sticky();
    }
    return outcome;
  }

  /// What becomes of a case of the traced arm where tracing does not work. Asked for by name, that
  /// is a failure; else it is something that this machine cannot do.
  Outcome untraceable(const TraceUnavailable& problem) const {
    const bool required = job_.value("trace_required", false);
    return {problem.invalid() ? Status::invalid
            : required        ? Status::failed
                              : Status::unsupported,
            problem.what(),
            "",
            0,
            false};
  }

  void measure_into(const CaseName& name, Outcome& outcome) {
    const Benchmark& definition = benchmark_of(name);
    static const nvtx::Name setup("setup");
    std::unique_ptr<Case> prepared;
    {
      const nvtx::Range range(setup);
      prepared = definition.make(
          {*device_,
           name,
           derive_seed(job_.at("seed").get<std::uint64_t>(), "case/" + name.text())});
    }
    outcome.method = prepared->method();
    // The host works while a case is prepared, and has no clock of its own beside the thread's.
    if (warmth_ && device_->facts().backend != "host") warmth_->keep();
    send_message({{"prepared", name.text()}});
    const std::unique_ptr<CaseTrace> trace =
        tracing_.of_case(definition.traced_as(name), prepared->operations_per_sample());
    if (trace) trace->begin();
    write_telemetry(name, -1);
    SteadyRule steady;
    measure_blocks(*prepared,
                   name,
                   definition.metrics(name),
                   definition.sampling(profile_, name),
                   [&](int index, const Block& block) {
                     const std::vector<Column> traced =
                         trace ? trace->finish(block) : std::vector<Column>();
                     writer_.write_samples(name.text(), index, outcome.samples, block, traced);
                     write_telemetry(name, index);
                     outcome.samples += block.size();
                     send_message({{"block", index}});
                     if (!definition.stops_when_steady) return true;
                     steady.add(block);
                     return !steady.steady();
                   });
    if (trace) {
      writer_.write(RunTracing::record(name.text(), *trace));
      if (const auto problem = trace->invalid()) throw InvalidMeasurement(problem->what());
    }
    prepared->verify_timed_work();
  }

  /// Between blocks: after block `block`, -1 before the first.
  void write_telemetry(const CaseName& name, int block) {
    const TelemetryReading reading = telemetry_->read();
    Json record = new_record("telemetry");
    record["case"] = name.text();
    record["block"] = block;
    record["at_ns"] = reading.at_ns;
    record["values"] = Json::object();
    for (const auto& [key, value] : reading.values) {
      record["values"][std::string(key)] = value;
      if (key == "other_processes")
        other_processes_ = std::max(other_processes_.value_or(0), static_cast<int>(value));
    }
    writer_.write(record);
  }

  void write_summary(const CaseName& name, const Outcome& outcome) {
    Json summary = new_record("summary");
    summary["case"] = name.text();
    summary["status"] = name_of(outcome.status);
    summary["reason"] = outcome.reason;
    summary["n"] = outcome.samples;
    summary["method"] = outcome.method;
    writer_.write(summary);
  }

  void write_event(const CaseName& name, const LibraryError& error) {
    Json event = new_record("event");
    event["event"] = "library-error";
    event["case"] = name.text();
    event["at_ns"] = now_ns();
    event["library"] = error.library();
    event["call"] = error.call();
    event["code"] = error.code();
    event["message"] = error.text();
    event["sticky"] = error.sticky();
    writer_.write(event);
  }

  /// Which form of the kernels runs here; a build without device code has none, and its cases say
  /// so.
  void describe_kernels(Json& record) {
    try {
      const std::unique_ptr<Kernel> kernel = device_->load(kernels::null_kernel);
      record["kernel_form"] = kernel->form();
      record["jit"] = kernel->compiled_by_driver();
    } catch (const Unsupported&) {
    }
  }

  /// The form of the kernels is part of what must be equal to compare.
  void note_kernels(const Json& record) {
    for (const char* key : {"kernel_form", "jit"}) {
      if (record.contains(key)) fingerprint_[key] = record[key];
    }
  }

  bool simulated() const {
    return device_->facts().simulated ||
           std::ranges::any_of(all_libraries(), &LoadedLibrary::simulated);
  }

  Json libraries() const {
    Json all = Json::array();
    for (const LoadedLibrary& library : all_libraries()) all.push_back(to_json(library));
    return all;
  }

  /// The device's, and those that watch it.
  std::vector<LoadedLibrary> all_libraries() const {
    std::vector<LoadedLibrary> all = device_->libraries();
    if (const auto tracer = tracing_.loaded_library()) all.push_back(*tracer);
    if (telemetry_) {
      if (const auto telemetry = telemetry_->loaded_library()) all.push_back(*telemetry);
    }
    return all;
  }

  Json job_;
  std::int64_t begin_ns_;
  Json removed_variables_;
  Profile profile_;
  Json fingerprint_;
  bool fresh_ = false;
  RunTracing tracing_;  // before the device: tracing must be there first
  std::unique_ptr<Device> device_;
  RecordWriter writer_;
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<Warmth> warmth_;  // none where first launches are measured, or nothing launches
  std::optional<int> other_processes_;
};

struct Task {
  std::string_view name;
  void (*run)(const Json& job);
};

constexpr Task kTasks[] = {
    // lists the devices of a backend
    {"probe", [](const Json& job) { send_message(probe(job)); }},
    // opens a device once and says how long that took
    {"initialise", [](const Json& job) { send_message(initialise(job)); }},
    // compiles the portable kernels into a cache for later processes
    {"warm-jit-cache", [](const Json& job) { send_message(warm_jit_cache(job)); }},
    // says why CUPTI cannot be loaded, if so
    {"find-tracing",
     [](const Json&) {
       send_message({{"cupti", why_no_cupti().value_or("")}});
     }},
    // keeps the driver open until it is killed
    {"keep",
     [](const Json&) {
       probe_devices("cuda");
       send_message({{"kept", true}});
       for (;;) pause();
     }},
    // measures cases and records them
    {"run", [](const Json& job) { Run(job).measure_all(); }},
};

}  // namespace

int run_job(const Json& job) {
  try {
    const auto name = job.at("task").get<std::string>();
    const auto* const task = std::ranges::find(kTasks, name, &Task::name);
    if (task == std::end(kTasks)) throw UsageError("a worker knows no task '" + name + "'");
    task->run(job);
    return 0;
  } catch (const std::exception& error) {
    const bool disk = dynamic_cast<const WriteError*>(&error) != nullptr;
    send_message({{"error", error.what()}, {"disk", disk}});
    if (process_is_traced()) std::_Exit(static_cast<int>(ExitCode::failed));
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace launchgap
