#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/inserted_delay.h"
#include "harness/import/launch_tail.h"
#include "harness/measure/loop.h"
#include "harness/measure/nvtx.h"
#include "harness/measure/pattern_list.h"
#include "harness/measure/telemetry.h"
#include "harness/measure/warm_up.h"
#include "harness/record/records.h"
#include "harness/record/writer.h"
#include "harness/run/event_keeper.h"
#include "harness/run/job.h"
#include "harness/run/leak_check.h"
#include "harness/run/perform_job.h"
#include "harness/run/process.h"
#include "harness/run/process_environment.h"
#include "harness/run/run_tracing.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

/// Whether a job's process has nothing to do but its one sample.
bool is_fresh_process(const job::Run& job) {
  return std::ranges::any_of(job.cases, [](const std::string& name) {
    return benchmark_of(CaseName::parse(name)).fresh_process;
  });
}

/// The samples in which the launching thread was taken off its CPU, on the trace's clock.
std::vector<recording::OffItsCpu> off_its_cpu(const MeasuredBlock& measured,
                                              const TraceClock& clock) {
  const Block& block = measured.samples;
  std::vector<recording::OffItsCpu> times;
  for (const WatchedSample& watched : measured.thread.slow()) {
    const auto sample = static_cast<std::size_t>(watched.sample);
    if (watched.events.involuntary == 0 || sample >= block.size()) continue;
    const bool is_last = sample + 1 == block.size();
    const std::int64_t end_ns = is_last ? block.end_ns() : block.starts_ns()[sample + 1];
    times.push_back({clock.trace_time(block.starts_ns()[sample]), clock.trace_time(end_ns)});
  }
  return times;
}

/// Opens the device from CPUs near it: the driver puts its own memory on the node of the thread
/// that makes the context. Its threads inherit that, and no more.
std::unique_ptr<Device> open_near_device(const job::Run& job) {
  bind_thread(job.near_cpus);
  return open_device(job.backend, job.uuid, open_options(job.process_config, job.jit_cache));
}

/// LAUNCHGAP_WARM_UP=off is for tests of everything but times; it is part of the fingerprint.
bool wants_warm_up() {
  const char* const wanted = std::getenv("LAUNCHGAP_WARM_UP");
  if (!wanted || !*wanted || std::string_view(wanted) == "on") return true;
  if (std::string_view(wanted) == "off") return false;
  throw UsageError("LAUNCHGAP_WARM_UP is '{}': it can be on or off", wanted);
}

/// What records say of a key: nothing in a build whose samples are no NVTX ranges.
std::optional<std::uint64_t> key_of(std::uint64_t key) {
  return nvtx::kIsThere ? std::optional(key) : std::nullopt;
}

/// What a process's warm-up has come to, with that before single cases.
Json so_far(const WarmUpResult& warm_up) {
  return {{"steady", warm_up.steady},
          {"seconds", warm_up.seconds},
          {"rounds", warm_up.rounds},
          {"again", warm_up.again}};
}

/// What happened to a case, and whether the process is of further use.
struct CaseResult {
  Status status = Status::ok;
  std::string reason = {};
  std::string method = {}, algorithm = {};
  std::uint64_t samples = 0;
  bool sticky = false;
  bool of_trace = false;  // the reason begins with a word for what is wrong with the trace
  bool steady = true;     // false: the device had cooled down, and did not become steady again
};

class MeasuredRun {
 public:
  explicit MeasuredRun(const job::Run& job)
      : job_(job),
        begin_ns_(now_ns()),
        removed_variables_(remove_falsifying_variables()),
        tracing_(job.backend, job.arm, job.process_config.trace_level()),
        device_(open_near_device(job)),
        writer_(RecordWriter::create(job.records)) {
    // Only now, so that the threads of driver and libraries are free to run elsewhere on the node.
    const bool bound = bind_thread(job.cpus);
    keep_kernels_from_waiting(*device_, job.tool);
    delay_ = prepare_inserted_delay();
    RunRecord record;
    record.session_id = job.session_id;
    record.node = job.node;
    record.replicate = job.replicate;
    record.arm = name_of(job.arm);
    record.process_config = job.process_config;
    record.attempt = job.attempt;
    record.seed = job.seed;
    record.side_by_side = job.side_by_side;
    record.begin_utc = utc_now();
    record.begin_ns = begin_ns_;
    record.pid = getpid();
    record.cpus = cpu_list_text(bound ? job.cpus : allowed_cpus());
    record.device = device_->facts();
    // A process whose first launch is measured must not have loaded anything before.
    fresh_ = is_fresh_process(job);
    if (!fresh_) describe_kernels(record);
    record.simulated = simulated();
    record.versions = {{"launchgap", kVersion}, {"git", kGitRevision}, {"compiler", kCompiler}};
    record.libraries = all_libraries();
    fingerprint_ = job.fingerprint;
    note_kernels(record);
    for (const char* key : {"wait", "module_loading", "ecc", "compute_mode"}) {
      const auto& details = device_->facts().details;
      if (const auto found = details.find(key); found != details.end())
        fingerprint_[key] = found->second;
    }
    record.environment = environment_of_libraries();
    record.environment_removed = removed_variables_;
    fingerprint_["environment"] = environment_to_compare(*record.environment);
    telemetry_ = std::make_unique<Telemetry>(device_->facts());
    for (const auto& [key, value] : telemetry_->device_settings()) fingerprint_[key] = value;
    tracing_.prove(*device_);
    record.trace_state = tracing_.state();
    if (!fresh_ && wants_warm_up()) record.warm_up = warm_up_record();
    if (const auto tool = watching_tool(job.arm, job.tool)) {
      record.measured_under_tool = *tool;
      fingerprint_["measured_under_tool"] = *tool;
    }
    record.fingerprint = fingerprint_;
    writer_.write(record_to_json(record));
    if (tracing_.traced()) writer_.write(record_to_json(tracing_.record()));
    if (tracing_.traced() && !job.process_config.is_observer()) {
      keeper_.emplace(recording::events_of(job.records),
                      device_->facts(),
                      job.keep_events ? KeptEvents::all : KeptEvents::around_slowest);
    }
  }

  void measure_all() {
    for (const SkippedCase& skipped : job_.skipped)
      write_summary(CaseName::parse(skipped.case_name),
                    {.status = Status::skipped, .reason = skipped.reason});
    bool any_failed = false, sticky = false;
    std::string reason;
    if (!fresh_) leak_check_.begin(*device_);
    for (const std::string& text : job_.cases) {
      const CaseName name = CaseName::parse(text);
      report(message::CaseBegun{text});
      const CaseResult result =
          tracing_.problem() ? untraceable(*tracing_.problem()) : measure(name);
      write_summary(name, result);
      report(
          message::CaseEnded{text, result.status, result.reason, result.sticky, result.of_trace});
      if (result.status == Status::failed || result.status == Status::invalid) {
        any_failed = true;
        reason = "a case failed";
      }
      if (result.sticky) {
        reason = result.reason;
        sticky = true;
        break;
      }
      leak_check_.note(*device_, text);
    }
    write_end(any_failed ? "failed" : "ok", reason, sticky);
    // With a context that is lost, tearing down can crash or hang, and so it can with a tracer in
    // the process (pytorch/kineto#686), even to stop it; everything is written.
    if (sticky || process_is_traced()) std::_Exit(0);
  }

 private:
  /// Warms up, and says what that came to; null where nothing can be launched.
  Json warm_up_record() {
    try {
      warm_up_ =
          std::make_unique<WarmUp>(empty_launches(*device_, [this] { tracing_.discard(); }),
                                   [this]() -> std::optional<double> {
                                     for (const auto& [key, value] : telemetry_->read().values) {
                                       if (key == "sm_clock_mhz") return value;
                                     }
                                     return std::nullopt;
                                   });
    } catch (const Unsupported&) {
      return nullptr;
    }
    warm_up_->warm_up();
    const WarmUpResult& result = warm_up_->result();
    Json record = so_far(result);
    record["api_ns"] = result.last.call_ns;
    record["roundtrip_ns"] = result.last.roundtrip_ns;
    if (result.last.clock_mhz) record["sm_clock_mhz"] = *result.last.clock_mhz;
    return record;
  }

  void write_end(const char* status, const std::string& reason, bool sticky) {
    EndRecord end;
    end.status = status;
    end.reason = reason;
    end.duration_s = static_cast<double>(now_ns() - begin_ns_) * 1e-9;
    end.simulated = simulated();
    end.libraries = all_libraries();
    end.details = device_->facts().details;
    if (delay_) note_delay(end);
    if (warm_up_) end.warm_up = so_far(warm_up_->result());
    end.other_processes = other_processes_;
    leak_check_.report(end);
    if (!telemetry_->device_problem().empty()) end.telemetry_problem = telemetry_->device_problem();
    end.telemetry_missing = telemetry_->missing();
    if (fresh_ && !sticky) {
      describe_kernels(end);
      note_kernels(end);
    }
    // Libraries are loaded by the cases that need them, so only now are their versions known.
    for (const LoadedLibrary& library : *end.libraries)
      fingerprint_[library.name] = library.version;
    end.fingerprint = fingerprint_;
    writer_.write(record_to_json(end));
  }

  /// What was inserted, measured again now that the CPU's clock is what it was while measuring.
  void note_delay(EndRecord& end) const {
    end.delay_ns = measured_delay_ns();
    if (delay_->asked_ns >= delay_->least_ns) return;
    end.delay_problem = fmt::format(
        "{} ns were asked for, and {:.1f} ns are the least", delay_->asked_ns, delay_->least_ns);
  }

  CaseResult measure(const CaseName& name) {
    CaseResult result;
    const nvtx::Name range_name(name.text());
    const nvtx::Range range(range_name);
    try {
      measure_into(name, result);
    } catch (const Unsupported& error) {
      result = {.status = Status::unsupported, .reason = error.what()};
    } catch (const TooLarge& error) {
      result = {.status = Status::skipped, .reason = error.what()};
    } catch (const TraceUnavailable& problem) {
      result = untraceable(problem, std::move(result));
    } catch (const WriteError&) {
      throw;  // the disk's fault, and not the case's
    } catch (const InvalidMeasurement& error) {
      result.status = Status::invalid;
      result.reason = error.what();
    } catch (const LibraryError& error) {
      write_event(name, error);
      result.status = Status::failed;
      result.reason = error.what();
      result.sticky = error.sticky();
    } catch (const std::bad_alloc&) {
      result.status = Status::failed;
      result.reason = "the host has no memory left";
    } catch (const std::exception& error) {
      result.status = Status::failed;
      result.reason = error.what();
    }
    // Work whose error nobody waited for belongs to this case and not to the next one; and after a
    // failure, only the driver knows whether the device can still be used.
    try {
      device_->check();
    } catch (const LibraryError& error) {
      write_event(name, error);
      if (result.status != Status::failed) result.reason = error.what();
      result.status = Status::failed;
      result.sticky = result.sticky || error.sticky();
    }
    return result;
  }

  /// What becomes of a case of a traced run where tracing does not work. Asked for by name, that
  /// is a failure; else it is something that this machine cannot do.
  CaseResult untraceable(const TraceUnavailable& problem, CaseResult result = {}) const {
    result.status = problem.invalid()     ? Status::invalid
                    : job_.trace_required ? Status::failed
                                          : Status::unsupported;
    result.reason = problem.what();
    result.of_trace = true;
    return result;
  }

  void measure_into(const CaseName& name, CaseResult& result) {
    const Benchmark& definition = benchmark_of(name);
    static const nvtx::Name prepare("prepare");
    std::unique_ptr<Case> prepared;
    {
      const nvtx::Range range(prepare);
      prepared = definition.make({*device_, name, derive_seed(job_.seed, "case/" + name.text())});
    }
    result.method = prepared->method();
    result.algorithm = prepared->algorithm();
    for (const Choice& choice : prepared->choices()) writer_.write(record_to_json(choice));
    if (const auto bits = prepared->bits()) writer_.write(record_to_json(*bits));
    // The host works while a case is prepared, and has no clock of its own beside the thread's.
    if (warm_up_ && is_gpu(device_->facts())) result.steady = warm_up_->keep();
    report(message::CasePrepared{name.text()});
    const std::unique_ptr<CaseTrace> trace =
        tracing_.of_case(definition.traced_as(name), prepared->operations_per_sample());
    if (trace) trace->begin();
    if (keeper_) keeper_->begin(name);
    const int own_processes = prepared->processes();
    write_telemetry(name, -1, own_processes);
    SteadyRule steady;
    LaunchTail tail;
    const std::uint64_t first_key = first_sample_key(run_name(job_), name.text());
    measure_blocks(*prepared,
                   definition.metrics(name),
                   definition.sampling(job_.profile, name),
                   {run_name(job_), first_key},
                   [&](const MeasuredBlock& measured) {
                     const auto& [index, block, thread] = measured;
                     const std::vector<Column> traced =
                         trace ? trace->finish(block) : std::vector<Column>();
                     const std::uint64_t first = result.samples;
                     writer_.write_samples(
                         name.text(), index, first, block, traced, key_of(first_key + first));
                     if (thread.usual().samples > 0 || !thread.slow().empty()) {
                       writer_.write(record_to_json(
                           ThreadEventsRecord{name.text(), index, thread.slow(), thread.usual()}));
                     }
                     if (trace && keeper_) {
                       keeper_->add(index, first, block, traced, trace->records(), trace->clock());
                     }
                     if (trace) {
                       if (const auto own = recording::own_launch_tail(
                               trace->records(), off_its_cpu(measured, trace->clock())))
                         tail.add(*own);
                     }
                     write_telemetry(name, index, own_processes);
                     result.samples += block.size();
                     report(message::BlockDone{index});
                     if (!definition.stops_when_steady) return true;
                     steady.add(block);
                     return !steady.steady();
                   });
    if (trace) {
      TraceRecord record = RunTracing::record(name.text(), *trace);
      if (tail.launches > 0) record.tail = std::move(tail);
      writer_.write(record_to_json(record));
      if (const auto problem = trace->invalid()) throw TraceUnavailable(*problem);
      if (keeper_) {
        for (const SlowSampleRecord& slow : keeper_->finish()) writer_.write(record_to_json(slow));
      }
    }
    prepared->verify_timed_work();
    if (const auto skew = prepared->skew()) writer_.write(record_to_json(*skew));
  }

  /// Between blocks: after block `block`, -1 before the first. `own_processes` that the case has on
  /// the device are no others.
  void write_telemetry(const CaseName& name, int block, int own_processes) {
    const TelemetryReading reading = telemetry_->read();
    TelemetryRecord record{name.text(), block, reading.at_ns, {}};
    for (const auto& [key, value] : reading.values) {
      const bool counts_processes = key == "other_processes";
      const double others = counts_processes ? std::max(0.0, value - own_processes) : value;
      record.values.emplace(key, others);
      if (counts_processes)
        other_processes_ = std::max(other_processes_.value_or(0), static_cast<int>(others));
    }
    writer_.write(record_to_json(record));
  }

  void write_summary(const CaseName& name, const CaseResult& result) {
    SummaryRecord summary;
    summary.case_name = name.text();
    summary.status = result.status;
    summary.reason = result.reason;
    summary.n = result.samples;
    summary.method = result.method;
    if (!result.algorithm.empty()) summary.algorithm = result.algorithm;
    if (!result.steady) summary.steady = false;
    writer_.write(record_to_json(summary));
  }

  void write_event(const CaseName& name, const LibraryError& error) {
    EventRecord event;
    event.event = "library-error";
    event.case_name = name.text();
    event.at_ns = now_ns();
    event.library = error.library();
    event.call = error.call();
    event.code = error.code();
    event.message = error.text();
    event.sticky = error.sticky();
    writer_.write(record_to_json(event));
  }

  /// Which form of the kernels runs here; a build without device code has none, and its cases say
  /// so.
  template <class Record>
  void describe_kernels(Record& record) {
    try {
      const std::unique_ptr<Kernel> kernel = device_->load(kernels::null_kernel);
      record.kernel_form = kernel->form();
      record.jit = kernel->compiled_by_driver();
    } catch (const Unsupported&) {
    }
  }

  /// The form of the kernels is part of what must be equal to compare.
  template <class Record>
  void note_kernels(const Record& record) {
    if (record.kernel_form) fingerprint_["kernel_form"] = *record.kernel_form;
    if (record.jit) fingerprint_["jit"] = *record.jit;
  }

  bool simulated() const {
    return device_->facts().simulated ||
           std::ranges::any_of(all_libraries(), &LoadedLibrary::simulated);
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

  const job::Run& job_;
  std::int64_t begin_ns_;
  Variables removed_variables_;
  Json fingerprint_;
  bool fresh_ = false;
  RunTracing tracing_;  // before the device: tracing must be there first
  std::unique_ptr<Device> device_;
  RecordWriter writer_;
  std::unique_ptr<Telemetry> telemetry_;
  std::optional<EventKeeper> keeper_;  // in traced runs
  std::unique_ptr<WarmUp> warm_up_;  // none where first launches are measured, or nothing launches
  std::optional<int> other_processes_;
  LeakCheck leak_check_;
  std::optional<InsertedDelay> delay_;
};

}  // namespace

void measure(const job::Run& job) {
  std::vector<Pattern> patterns;
  for (const std::string& file : job.patterns) patterns.push_back(read_pattern(file));
  if (!patterns.empty()) use_patterns(std::move(patterns));
  MeasuredRun(job).measure_all();
}

}  // namespace launchgap
