#include "harness/run/session.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <sys/random.h>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/temporary_folder.h"
#include "harness/core/version.h"
#include "harness/measure/benchmark.h"
#include "harness/record/writer.h"
#include "harness/run/device_lock.h"
#include "harness/run/filter.h"
#include "harness/run/process.h"
#include "harness/run/progress.h"
#include "harness/run/settings.h"
#include "harness/trace/case_trace.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

constexpr double kProbeTimeoutS = 60;

std::string short_name(const DeviceFacts& device) {
  return device.backend == "host" ? "host" : fmt::format("{} ({})", device.name, device.index);
}

/// Where a GPU's launching thread runs: near the GPU, where the machine says what is near.
CpuList local_cpus(const DeviceFacts& device) {
  const CpuList allowed = allowed_cpus();
  CpuList local;
  if (const auto near = cpus_of_numa_node(device.numa_node.value_or(-1)))
    std::ranges::set_intersection(*near, allowed, std::back_inserter(local));
  return local.empty() ? allowed : local;
}

/// A worker with its cases still to do, over as many attempts as it takes.
class RunSlot {
 public:
  RunSlot(PlannedRun planned, const DeviceFacts& device, CpuList cpus, int side_by_side)
      : planned(std::move(planned)),
        device(device),
        cpus(std::move(cpus)),
        side_by_side(side_by_side) {}

  PlannedRun planned;
  const DeviceFacts& device;
  CpuList cpus;
  int side_by_side;
  int attempt = 0;
  std::deque<PlannedCase> pending;  // not yet begun
  Json skipped = Json::array();     // cases that are not tried again, with the reason
  std::optional<PlannedCase> current;
  fs::path records;
  std::unique_ptr<WorkerProcess> worker;
  std::int64_t last_sign_ns = 0;
  bool sticky = false;
  std::string error;         // what the worker said of its own end
  bool disk_failed = false;  // and that it could not write
};

class Session {
 public:
  explicit Session(PlannedSession planned)
      : session_(std::move(planned)),
        folder_(session_.options.output.empty() ? fs::path("results") / session_.id
                                                : session_.options.output),
        progress_(session_.plan.seconds(), session_.plan.run_count()) {}

  SessionResult run() {
    result_.folder = folder_;
    make_folder();
    meta_ = describe();
    write_meta("running");
    const SignalWatch watch;
    bool whole = true;
    try {
      measure();
    } catch (const std::exception& error) {
      // Nothing more can be kept, and what is there stays.
      fail(fmt::format("the session ends here: {}", error.what()));
      whole = false;
    }
    keeper_.reset();
    result_.stopped = stop_signal != 0;
    meta_["end_utc"] = utc_now();
    end_meta(whole && !result_.stopped ? "complete" : "stopped");
    return std::move(result_);
  }

 private:
  void measure() {
    claim_devices();
    measure_initialisation();
    write_meta("running");
    for (const Batch& batch : session_.plan.batches) {
      if (stop_signal) break;
      run_batch(batch);
    }
  }

  // --- the folder and session.json ---

  void make_folder() {
    std::error_code failed;
    if (fs::exists(folder_, failed) &&
        !(fs::is_directory(folder_, failed) && fs::is_empty(folder_, failed))) {
      throw UsageError(fmt::format(
          "{} exists already and is not an empty folder: name another with -o, or remove it",
          folder_.string()));
    }
    fs::create_directories(folder_ / "records", failed);
    if (failed)
      throw UsageError(fmt::format("{} cannot be made: {}", folder_.string(), failed.message()));
  }

  Json describe() {
    Json meta = new_record("session");
    meta["session_id"] = session_.id;
    meta["begin_utc"] = utc_now();
    meta["state"] = "running";
    meta["command_line"] = session_.options.command_line;
    meta["seed"] = session_.plan.seed;
    meta["profile"] = name_of(session_.options.profile);
    meta["replicates"] = session_.replicates;
    meta["filter"] = session_.options.filter;
    meta["tracing"] = session_.tracing;
    meta["launchgap_version"] = kVersion;
    meta["build"] = {{"type", kBuildType}, {"compiler", kCompiler}, {"git", kGitRevision}};
    meta["host"] = host_facts();
    if (!session_.options.doctor.is_null()) meta["doctor"] = session_.options.doctor;
    meta["notes"] = Json::array();
    for (const std::string& note : session_.machine.notes)
      meta["notes"].push_back({{"severity", "info"}, {"text", note}});
    meta["plan"] = Json::array();
    for (const Batch& batch : session_.plan.batches) {
      for (const PlannedRun& run : batch) {
        Json entry = {{"device", run.device},
                      {"replicate", run.replicate},
                      {"arm", name_of(run.arm)},
                      {"setup", run.setup},
                      {"cases", Json::array()}};
        for (const PlannedCase& planned : run.cases) entry["cases"].push_back(planned.name);
        meta["plan"].push_back(entry);
      }
    }
    return meta;
  }

  void write_meta(const char* state) {
    meta_["state"] = state;
    meta_["devices"] = Json::array();
    for (const DeviceFacts& device : session_.devices) meta_["devices"].push_back(to_json(device));
    write_file(folder_ / "session.json",
               meta_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  /// The last of it. Where there is no room for all of it, no reader must take the session for one
  /// that is running: that word is written over in its place, by one of the same length.
  void end_meta(const char* state) {
    try {
      return write_meta(state);
    } catch (const WriteError& error) {
      fail(error.what());
    }
    constexpr std::string_view kRunning = "\"state\": \"running\"",
                               kStopped = "\"state\": \"stopped\"";
    static_assert(kRunning.size() == kStopped.size());
    std::fstream file(folder_ / "session.json", std::ios::in | std::ios::out | std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::size_t at = text.find(kRunning);
    if (at == std::string::npos) return;
    file.seekp(static_cast<std::streamoff>(at));
    file << kStopped;
  }

  /// The device, and the arm where it is not the plain one: "NVIDIA A100 (0), traced,
  /// launch+trace=kernels".
  static std::string run_name(const RunSlot& slot) {
    if (slot.planned.arm == Arm::plain) return short_name(slot.device);
    const bool usual = family_of_setup(slot.planned.setup) == slot.planned.setup;
    return fmt::format("{}, {}{}",
                       short_name(slot.device),
                       name_of(slot.planned.arm),
                       usual ? "" : ", " + slot.planned.setup);
  }

  void fail(const std::string& line) {
    result_.failures.push_back(line);
    progress_.message(line);
  }

  // --- devices ---

  DeviceFacts& device_of(const std::string& uuid) {
    return *std::ranges::find(session_.devices, uuid, &DeviceFacts::uuid);
  }

  /// Locks the devices and only then opens them, so that nobody else's measurement is disturbed.
  void claim_devices() {
    std::vector<DeviceFacts*> locked;
    for (DeviceFacts& device : session_.devices) {
      try {
        locks_.emplace_back(device.uuid);
        locked.push_back(&device);
      } catch (const Error& error) {
        device.usable = false;
        device.reason = error.what();
      }
    }
    check_devices(locked, kProbeTimeoutS, [] { return stop_signal != 0; });
    for (const DeviceFacts& device : session_.devices) {
      if (!device.usable)
        fail(fmt::format("{}: not measured: {}", short_name(device), device.reason));
    }
  }

  /// Without persistence mode a GPU is shut down when its last user ends, and every new process
  /// waits for it to start again. A process that keeps the driver open spares that, where it does.
  void measure_initialisation() {
    const auto gpu = std::ranges::find_if(session_.devices, [](const DeviceFacts& device) {
      return device.backend == "cuda" && device.usable;
    });
    if (gpu == session_.devices.end()) return;
    const Json job = {{"task", "initialise"}, {"backend", "cuda"}, {"uuid", gpu->uuid}};
    const auto once = [&] {
      double milliseconds = 0;
      for (const Json& message : run_worker(
               job, worker_environment(*gpu), kProbeTimeoutS, [] { return stop_signal != 0; })) {
        milliseconds = maybe<double>(message, "initialise_ms").value_or(milliseconds);
      }
      return milliseconds;
    };
    Json record = {{"device_id", gpu->uuid}};
    try {
      const double again = once();
      keeper_ = std::make_unique<WorkerProcess>(Json{{"task", "keep"}}, visible_gpus());
      for (const std::int64_t until = now_ns() + 10'000'000'000;
           now_ns() < until && !keeper_->ended() && !stop_signal;) {
        wait_for_any({keeper_.get()}, 100);
        if (!keeper_->receive().empty()) break;
      }
      const double with_keeper = once();
      const bool helps = with_keeper < 0.8 * again && !keeper_->ended();
      if (!helps) keeper_.reset();
      record["first_ms"] = std::strtod(gpu->details["initialise_ms"].c_str(), nullptr);
      record["again_ms"] = again;
      record["with_keeper_ms"] = with_keeper;
      record["keeper"] = helps;
    } catch (const Error& error) {
      keeper_.reset();
      record["error"] = error.what();
    }
    meta_["initialisation"] = Json::array({record});
  }

  /// The environment of a process that sees the GPUs of this session and no others.
  std::map<std::string, std::string> visible_gpus() const {
    std::string uuids;
    for (const DeviceFacts& device : session_.devices) {
      if (device.backend == "cuda" && device.usable)
        uuids += (uuids.empty() ? "" : ",") + device.uuid;
    }
    return {{"CUDA_VISIBLE_DEVICES", uuids}};
  }

  // --- runs ---

  /// Runs a batch in waves: as many at once as there are CPUs, each with one of its own.
  void run_batch(const Batch& batch) {
    std::deque<PlannedRun> waiting;
    for (const PlannedRun& run : batch) {
      if (device_of(run.device).usable) {
        waiting.push_back(run);
      } else {
        progress_.run_done();
      }
    }
    const int at_once = static_cast<int>(std::min(waiting.size(), allowed_cpus().size()));
    std::vector<std::unique_ptr<RunSlot>> active;
    while ((!waiting.empty() || !active.empty()) && !stop_signal) {
      while (!waiting.empty() && static_cast<int>(active.size()) < at_once) {
        PlannedRun run = std::move(waiting.front());
        waiting.pop_front();
        const DeviceFacts& device = device_of(run.device);
        auto slot =
            std::make_unique<RunSlot>(std::move(run), device, choose_cpus(device, active), at_once);
        for (const PlannedCase& planned : slot->planned.cases) slot->pending.push_back(planned);
        if (start(*slot)) active.push_back(std::move(slot));
      }
      std::vector<WorkerProcess*> workers;
      for (const auto& slot : active) workers.push_back(slot->worker.get());
      wait_for_any(workers, progress_.on_terminal() ? 100 : 1000);
      std::erase_if(active,
                    [this](const std::unique_ptr<RunSlot>& slot) { return !attend(*slot); });
    }
    for (const auto& slot : active) stop(*slot);
  }

  /// The host's launching thread has the first CPU (its queue has the last); a GPU's one that is
  /// near it and free.
  static CpuList choose_cpus(const DeviceFacts& device,
                             const std::vector<std::unique_ptr<RunSlot>>& active) {
    if (device.backend == "host") return {allowed_cpus().front()};
    const auto is_free = [&](int cpu) {
      return std::ranges::none_of(active,
                                  [cpu](const auto& slot) { return slot->cpus.front() == cpu; });
    };
    for (const CpuList& candidates : {local_cpus(device), allowed_cpus()}) {
      // From the back: the first CPUs are the ones that serve most interrupts.
      for (auto cpu = candidates.rbegin(); cpu != candidates.rend(); ++cpu) {
        if (is_free(*cpu)) return {*cpu};
      }
    }
    return {allowed_cpus().back()};
  }

  Json fingerprint(const RunSlot& slot) const {
    const DeviceFacts& device = slot.device;
    const Json& host = meta_.at("host");
    Json json = {{"launchgap", kVersion},
                 {"compiler", kCompiler},
                 {"build_type", kBuildType},
                 {"device", device.name},
                 {"backend", device.backend}};
    if (device.compute_capability) json["compute_capability"] = *device.compute_capability;
    if (device.driver_version) json["driver_version"] = *device.driver_version;
    for (const char* key : {"cpu_model", "kernel", "governor", "cores"}) {
      if (host.contains(key)) json[key] = host[key];
    }
    json["profile"] = meta_.at("profile");
    json["side_by_side"] = slot.side_by_side;
    return json;
  }

  /// Starts an attempt at the slot's pending cases. False if there are none left or no worker could
  /// be started.
  bool start(RunSlot& slot) {
    skip_condemned(slot);
    const std::string attempt = slot.attempt == 0 ? "" : fmt::format(".{}", slot.attempt);
    slot.records =
        folder_ / "records" /
        file_name_part(fmt::format("{}.{}.r{}.{}.{}{}.jsonl",
                                   meta_["host"]["node"].get<std::string>(),
                                   slot.device.backend == "host" ? "host" : slot.device.uuid,
                                   slot.planned.replicate,
                                   name_of(slot.planned.arm),
                                   slot.planned.setup,
                                   attempt));
    if (slot.pending.empty()) {
      if (!slot.skipped.empty()) {
        RecordWriter writer = records_of(slot);
        for (const Json& skipped : slot.skipped)
          writer.write(summary_of(skipped["case"], Status::skipped, skipped["reason"]));
        write_end(writer, "ok", "");
      }
      progress_.run_done();
      return false;
    }
    Json job = {{"task", "run"},
                {"backend", slot.device.backend},
                {"uuid", slot.device.uuid},
                {"session_id", session_.id},
                {"node", meta_["host"]["node"]},
                {"replicate", slot.planned.replicate},
                {"arm", name_of(slot.planned.arm)},
                {"setup", slot.planned.setup},
                {"attempt", slot.attempt},
                {"trace_required", session_.options.tracing == Tracing::on},
                {"seed", session_.plan.seed},
                {"profile", name_of(session_.options.profile)},
                {"side_by_side", slot.side_by_side},
                {"cpus", cpu_list_text(slot.cpus)},
                {"near_cpus", cpu_list_text(local_cpus(slot.device))},
                {"records", text_of_path(slot.records)},
                {"fingerprint", fingerprint(slot)},
                {"cases", Json::array()}};
    for (const PlannedCase& planned : slot.pending) job["cases"].push_back(planned.name);
    if (setting_of(slot.planned.setup, "loading") == "jit_cached")
      job["jit_cache"] = text_of_path(warm_jit_cache(slot));
    job["skipped"] = slot.skipped;
    slot.current.reset();
    slot.sticky = false;
    slot.error.clear();
    slot.last_sign_ns = now_ns();
    try {
      slot.worker = std::make_unique<WorkerProcess>(job, worker_environment(slot.device));
      return true;
    } catch (const Error& error) {
      give_up_run(slot, error.what());
      return false;
    }
  }

  /// The folder in which the driver finds what it compiled before, filled once per device by a
  /// process of its own. If that fails, the cases that need it find nothing there and say so.
  std::string warm_jit_cache(const RunSlot& slot) {
    if (!jit_caches_) jit_caches_.emplace("launchgap-jit-");
    if (jit_caches_->path().empty()) return "";
    const fs::path folder = jit_caches_->path() / slot.device.uuid;
    std::error_code exists;
    if (fs::create_directory(folder, exists)) {
      try {
        run_worker(
            {{"task", "warm-jit-cache"},
             {"backend", slot.device.backend},
             {"uuid", slot.device.uuid},
             {"setup", with_setting(family_of_setup(slot.planned.setup), "loading", "jit_warming")},
             {"jit_cache", text_of_path(folder)}},
            worker_environment(slot.device),
            kProbeTimeoutS,
            [] { return stop_signal != 0; });
      } catch (const Error& error) {
        progress_.message(
            fmt::format("{}: the driver's cache of compiled kernels cannot be filled: {}",
                        short_name(slot.device),
                        error.what()));
      }
    }
    return folder.string();
  }

  /// Takes out cases that crashed or hung in an earlier run on this device: they would do it again,
  /// and a hang costs its whole time-out each time. The run's records say so.
  void skip_condemned(RunSlot& slot) {
    slot.skipped = Json::array();
    const auto reason_to_skip = [&](const PlannedCase& planned) -> const std::string* {
      for (const std::string& name : {planned.name, kEveryCase}) {
        const auto condemned = condemned_.find(condemnation(slot, name));
        if (condemned != condemned_.end()) return &condemned->second;
      }
      return nullptr;
    };
    std::erase_if(slot.pending, [&](const PlannedCase& planned) {
      const std::string* const reason = reason_to_skip(planned);
      if (!reason) return false;
      slot.skipped.push_back({{"case", planned.name}, {"reason", *reason}});
      progress_.advance(planned.seconds);
      return true;
    });
  }

  /// Looks after a running slot. False when it is done.
  bool attend(RunSlot& slot) {
    const bool ended = slot.worker->ended().has_value();
    for (const Json& message : slot.worker->receive()) take(slot, message);
    if (!ended) {
      const double silent_s = static_cast<double>(now_ns() - slot.last_sign_ns) * 1e-9;
      const double limit_s =
          std::max(session_.options.case_timeout_s, slot.current ? 5 * slot.current->seconds : 0);
      if (silent_s > limit_s) return hung(slot, limit_s);
      progress_.show(fmt::format(
          "{}  {}", short_name(slot.device), slot.current ? slot.current->name : "starting"));
      return true;
    }
    if (slot.worker->ended()->clean()) {
      if (!slot.sticky) {
        progress_.run_done();
        return false;
      }
      return next_attempt(slot);  // the worker has recorded the failed case and its own end
    }
    return crashed(slot);
  }

  void take(RunSlot& slot, const Json& message) {
    slot.last_sign_ns = now_ns();
    if (const auto begun = maybe<std::string>(message, "begin")) {
      const auto planned = std::ranges::find(slot.pending, *begun, &PlannedCase::name);
      if (planned == slot.pending.end()) return;
      slot.current = *planned;
      slot.pending.erase(planned);
    } else if (maybe<std::string>(message, "end") && slot.current) {
      const auto status = maybe<std::string>(message, "status").value_or("");
      if (status == "failed" || status == "invalid") {
        const auto reason = maybe<std::string>(message, "reason").value_or("");
        // "invalid:dropped: …" says itself what it is.
        fail(fmt::format("{}: {}: {}{}",
                         run_name(slot),
                         slot.current->name,
                         reason.starts_with(status + ":") ? "" : status + ": ",
                         reason));
      }
      slot.sticky = maybe<bool>(message, "sticky").value_or(false);
      progress_.advance(slot.current->seconds);
      slot.current.reset();
    } else if (const auto error = maybe<std::string>(message, "error")) {
      slot.error = *error;
      if (maybe<bool>(message, "disk").value_or(false)) slot.disk_failed = true;
    }
  }

  bool next_attempt(RunSlot& slot) {
    ++slot.attempt;
    return start(slot);
  }

  bool crashed(RunSlot& slot) {
    if (slot.disk_failed) throw WriteError(slot.error);
    const std::string output = slot.worker->last_output();
    const std::string reason = !slot.error.empty() ? slot.error
                                                   : fmt::format("the process {}{}{}",
                                                                 slot.worker->ended()->text(),
                                                                 output.empty() ? "" : ": ",
                                                                 output);
    if (!slot.current) return ended_between_cases(slot, reason);
    close_records(slot, reason, "crashed");
    condemn(slot, reason);
    return next_attempt(slot);
  }

  /// A worker that crashed or hung while no case was running: after a sticky error, while it put
  /// things away, or before it began. Nothing that was measured is in doubt.
  bool ended_between_cases(RunSlot& slot, const std::string& reason) {
    if (slot.sticky) return next_attempt(slot);
    if (!slot.pending.empty()) {
      give_up_run(slot, reason);
      return false;
    }
    Json event = new_record("event");
    event["event"] = "worker-ended-badly";
    event["at_ns"] = now_ns();
    event["message"] = reason;
    RecordWriter writer = records_of(slot);
    writer.write(event);
    write_end(writer, "ok", "after its last case " + reason);
    progress_.message(fmt::format("{}: {} r{}: after its last case {}",
                                  short_name(slot.device),
                                  slot.planned.setup,
                                  slot.planned.replicate,
                                  reason));
    progress_.run_done();
    return false;
  }

  bool hung(RunSlot& slot, double limit_s) {
    const std::string what = slot.current           ? "no block was finished"
                             : slot.pending.empty() ? "the worker did not end"
                                                    : "the worker did not begin";
    const std::string reason = fmt::format("{} within {:.0f} s: it hung", what, limit_s);
    const bool gone = slot.worker->kill(10);
    if (!gone) {
      // Whatever still holds the process may write to its file; the rest of the run's story goes to
      // another.
      ++slot.attempt;
      slot.records.replace_extension(fmt::format("{}.jsonl", slot.attempt));
      abandoned_.push_back(std::move(slot.worker));
      DeviceFacts& device = device_of(slot.device.uuid);
      device.usable = false;
      device.reason = "its worker could not be killed after it hung: the device is given up";
    }
    if (!slot.current) {
      if (!slot.pending.empty()) {
        // What keeps a worker from beginning keeps the next one too, and each costs a time-out.
        condemned_[condemnation(slot, kEveryCase)] =
            fmt::format("in run r{} of {}: {}", slot.planned.replicate, slot.planned.setup, reason);
      }
      if (gone) return ended_between_cases(slot, reason);
      give_up_run(slot, reason);
      return false;
    }
    close_records(slot, reason, "hung");
    condemn(slot, reason);
    if (gone) return next_attempt(slot);
    give_up_run(slot, device_of(slot.device.uuid).reason);
    return false;
  }

  void condemn(RunSlot& slot, const std::string& reason) {
    condemned_[condemnation(slot, slot.current->name)] =
        fmt::format("it failed in run r{}: {}", slot.planned.replicate, reason);
    fail(fmt::format("{}: {}: failed: {}", run_name(slot), slot.current->name, reason));
    progress_.advance(slot.current->seconds);
    slot.current.reset();
  }

  /// The remaining cases of the run fail together: no worker gets as far as to begin one.
  void give_up_run(RunSlot& slot, const std::string& reason) {
    fail(fmt::format("{}: {} r{}: not measured: {}",
                     short_name(slot.device),
                     slot.planned.setup,
                     slot.planned.replicate,
                     reason));
    RecordWriter writer = records_of(slot);
    for (const PlannedCase& planned : slot.pending) {
      writer.write(summary_of(planned.name, Status::failed, reason));
      progress_.advance(planned.seconds);
    }
    write_end(writer, "failed", reason);
    slot.pending.clear();
    progress_.run_done();
  }

  void stop(RunSlot& slot) {
    slot.worker->kill(5);
    RecordWriter writer = records_of(slot);
    write_end(writer, "stopped", "the session was stopped");
  }

  // --- records that the parent writes for a worker that cannot ---

  /// The file of a worker that is gone, with a `run` record if the worker did not come to write
  /// one.
  RecordWriter records_of(const RunSlot& slot) {
    std::error_code ignored;
    const bool begun =
        fs::exists(slot.records, ignored) && fs::file_size(slot.records, ignored) > 0;
    RecordWriter writer = RecordWriter::reopen(slot.records);
    if (!begun) {
      Json record = new_record("run");
      record["session_id"] = session_.id;
      record["node"] = meta_["host"]["node"];
      record["device"] = to_json(slot.device);
      record["replicate"] = slot.planned.replicate;
      record["arm"] = name_of(slot.planned.arm);
      record["setup"] = slot.planned.setup;
      record["attempt"] = slot.attempt;
      record["begin_utc"] = utc_now();
      record["simulated"] = slot.device.simulated;
      writer.write(record);
    }
    return writer;
  }

  static Json summary_of(const std::string& name, Status status, const std::string& reason) {
    Json summary = new_record("summary");
    summary["case"] = name;
    summary["status"] = name_of(status);
    summary["reason"] = reason;
    return summary;
  }

  static void write_end(RecordWriter& writer, const char* status, const std::string& reason) {
    Json end = new_record("end");
    end["status"] = status;
    end["reason"] = reason;
    end["written_by"] = "parent";
    writer.write(end);
  }

  void close_records(RunSlot& slot, const std::string& reason, const char* what) {
    RecordWriter writer = records_of(slot);
    Json event = new_record("event");
    event["event"] = std::string("worker-") + what;
    event["case"] = slot.current->name;
    event["at_ns"] = now_ns();
    event["message"] = reason;
    writer.write(event);
    writer.write(summary_of(slot.current->name, Status::failed, reason));
    write_end(writer, "failed", reason);
  }

  PlannedSession session_;
  fs::path folder_;
  Progress progress_;
  Json meta_;
  SessionResult result_;
  std::vector<DeviceLock> locks_;
  static inline const std::string kEveryCase;
  /// Device, arm, level of tracing, and case: what failed at one level may work at another.
  using Condemnation = std::tuple<std::string, Arm, TraceLevel, std::string>;
  static Condemnation condemnation(const RunSlot& slot, const std::string& case_name) {
    const bool traced = slot.planned.arm == Arm::traced;
    return {slot.device.uuid,
            slot.planned.arm,
            traced ? trace_level_of(slot.planned.setup) : TraceLevel::none,
            case_name};
  }
  std::map<Condemnation, std::string> condemned_;  // with the reason why it is not tried again
  std::vector<std::unique_ptr<WorkerProcess>> abandoned_;
  std::unique_ptr<WorkerProcess> keeper_;
  std::optional<TemporaryFolder> jit_caches_;
};

/// From the kernel. std::random_device would do the same, but ties the binary to the newest glibc.
std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    seed = derive_seed(static_cast<std::uint64_t>(now_ns()), "clock");
  return seed;
}

std::string new_session_id() {
  std::string text = utc_now();
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{:06x}", text, random_seed() & 0xFFFFFFu);
}

/// Everything that a device would do, by setup, without tracing. The number of replicates is 0
/// where it is the session's.
std::vector<Workload> workloads_of(const DeviceFacts& device,
                                   Profile profile,
                                   const Filter& filter) {
  std::map<std::string, Workload> by_setup;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const CaseName& name : benchmark.cases(profile, device)) {
      if (!filter.passes(name.text())) continue;
      const std::string setup = benchmark.setup_of(name);
      Workload& workload = by_setup[setup];
      workload.device = device.uuid;
      workload.setup = setup;
      workload.replicates = benchmark.processes ? benchmark.processes(profile) : 0;
      // The host's own work takes all of its CPUs, so it never has neighbours.
      workload.alone = workload.alone || benchmark.alone || device.backend == "host";
      workload.cases.push_back(
          {name.text(), benchmark.seconds(device, name, benchmark.sampling(profile, name))});
    }
  }
  std::vector<Workload> workloads;
  for (auto& [setup, workload] : by_setup) workloads.push_back(std::move(workload));
  return workloads;
}

/// What of a workload runs under tracing: what has records that say something; and what shows the
/// observer effect once more at each level, without tracing too, with as many processes as the
/// plain arm has. Where a kernel's time goes is told by fewer.
std::vector<Workload> traced_twins(const Workload& plain) {
  constexpr int kPlainRunsPerTracedRun = 3;
  const auto shows_observer_effect = [](const PlannedCase& planned) {
    return benchmark_of(CaseName::parse(planned.name)).shows_observer_effect;
  };
  const auto is_traced = [](const PlannedCase& planned) {
    const CaseName name = CaseName::parse(planned.name);
    return benchmark_of(name).traced(name);
  };
  Workload twin = plain;
  twin.arm = Arm::traced;
  std::erase_if(twin.cases, std::not_fn(is_traced));
  if (twin.cases.empty()) return {};
  if (std::ranges::none_of(twin.cases, shows_observer_effect)) {
    twin.replicates = std::max(1, plain.replicates / kPlainRunsPerTracedRun);
    return {twin};
  }
  std::vector<Workload> twins = {twin};
  std::erase_if(twin.cases, std::not_fn(shows_observer_effect));
  for (const TraceLevel level :
       {TraceLevel::none, TraceLevel::launches, TraceLevel::kernels, TraceLevel::all}) {
    twin.setup = observer_setup(plain.setup, level);
    twin.arm = level == TraceLevel::none ? Arm::plain : Arm::traced;
    twins.push_back(twin);
  }
  return twins;
}

/// Whether GPUs can be traced here; asked in a process of its own, since a library that is loaded
/// may do anything.
Json find_gpu_tracing() {
  std::string problem = "the process that looked for CUPTI ended without an answer";
  try {
    for (const Json& message :
         run_worker({{"task", "find-tracing"}}, {}, kProbeTimeoutS, [] { return false; })) {
      problem = maybe<std::string>(message, "cupti")
                    .value_or(maybe<std::string>(message, "error").value_or(problem));
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  const TraceState state = problem.empty() ? TraceState::ok : TraceState::cupti_not_found;
  return {{"state", text_of(state)}, {"reason", problem}};
}

double estimated_bytes(const Plan& plan, Profile profile) {
  double bytes = 0;
  for (const Batch& batch : plan.batches) {
    for (const PlannedRun& run : batch) {
      bytes += 2000;
      for (const PlannedCase& planned : run.cases) {
        const CaseName name = CaseName::parse(planned.name);
        const Benchmark& benchmark = benchmark_of(name);
        const Sampling sampling = benchmark.sampling(profile, name);
        std::size_t columns = benchmark.metrics(name).size() + 1;
        if (run.arm == Arm::traced && trace_level_of(run.setup) == TraceLevel::all)
          columns += traced_metrics(benchmark.traced_as(name), benchmark.metrics(name)).size();
        bytes += 1000.0 * sampling.blocks +
                 6.0 * sampling.blocks * sampling.samples * static_cast<double>(columns);
      }
    }
  }
  return bytes;
}

}  // namespace

Tracing parse_tracing(std::string_view text) {
  if (text == "auto") return Tracing::automatic;
  if (text == "on") return Tracing::on;
  if (text == "off") return Tracing::off;
  throw UsageError(fmt::format("--trace is '{}': choose auto, on or off", text));
}

ExitCode SessionResult::exit_code() const {
  if (stopped) return ExitCode::stopped_early;
  return failures.empty() ? ExitCode::done : ExitCode::failed;
}

PlannedSession plan_session(const RunOptions& options) {
  const Filter filter(options.filter);
  PlannedSession session;
  session.id = new_session_id();
  session.options = options;
  session.replicates = options.replicates.value_or(default_replicates(options.profile));
  session.machine = find_devices(kProbeTimeoutS);
  for (const FalsifyingVariable& variable : falsifying_variables()) {
    if (const char* const value = std::getenv(variable.name)) {
      session.machine.notes.push_back(fmt::format(
          "{}={} is set, and would falsify what is measured ({}): it is removed for the "
          "processes of this session.",
          variable.name,
          value,
          variable.effect));
    }
  }
  session.devices = select_devices(session.machine, options.devices);
  const bool any_gpu = std::ranges::any_of(session.devices, [](const DeviceFacts& device) {
    return device.backend == "cuda" && device.usable;
  });
  session.tracing = options.tracing == Tracing::off ? Json{{"state", "off"}, {"reason", ""}}
                    : any_gpu                       ? find_gpu_tracing()
                                                    : Json{{"state", "ok"}, {"reason", ""}};
  const bool gpus_traceable = session.tracing["state"] == "ok" || options.tracing == Tracing::on;
  if (any_gpu && session.tracing["state"] != "ok" && options.tracing == Tracing::automatic) {
    session.machine.notes.push_back(
        fmt::format("GPUs are not traced: {}. The numbers of the plain arm need no tracing.",
                    session.tracing["reason"].get<std::string>()));
  }
  std::vector<Workload> workloads;
  for (const DeviceFacts& device : session.devices) {
    const bool traced =
        options.tracing != Tracing::off && (device.backend == "host" || gpus_traceable);
    for (Workload& workload : workloads_of(device, options.profile, filter)) {
      if (workload.replicates == 0 || options.replicates) workload.replicates = session.replicates;
      if (traced) std::ranges::copy(traced_twins(workload), std::back_inserter(workloads));
      workloads.push_back(std::move(workload));
    }
  }
  if (workloads.empty()) {
    throw UsageError(
        fmt::format("no case passes --filter '{}': `launchgap list benchmarks` shows their names",
                    options.filter));
  }
  session.plan = make_plan(workloads, options.seed.value_or(random_seed() >> 32));
  session.record_bytes = estimated_bytes(session.plan, options.profile);
  return session;
}

SessionResult run_session(PlannedSession session) {
  return Session(std::move(session)).run();
}

Json plan_as_json(const PlannedSession& session) {
  return {{"runs", session.plan.run_count()},
          {"steps", session.plan.batches.size()},
          {"seconds", session.plan.seconds()},
          {"seconds_per_run", kSecondsPerRun},
          {"record_bytes", session.record_bytes},
          {"seed", session.plan.seed}};
}

std::string describe_plan(const PlannedSession& session) {
  std::string text =
      fmt::format("{} runs in {} steps, about {}, about {:.1f} MB of records; seed {}\n\n",
                  session.plan.run_count(),
                  session.plan.batches.size(),
                  duration_text(session.plan.seconds()),
                  session.record_bytes / 1e6,
                  session.plan.seed);
  int step = 0;
  for (const Batch& batch : session.plan.batches) {
    ++step;
    for (const PlannedRun& run : batch) {
      const auto device = std::ranges::find(session.devices, run.device, &DeviceFacts::uuid);
      text += fmt::format("{:3}  {:<36} {:<7} {:<21} r{:<3} {:3} cases{}\n",
                          step,
                          short_name(*device),
                          name_of(run.arm),
                          run.setup,
                          run.replicate,
                          run.cases.size(),
                          device->usable ? "" : "  (not usable: " + device->reason + ")");
    }
  }
  return text;
}

}  // namespace launchgap
