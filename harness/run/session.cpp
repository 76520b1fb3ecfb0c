#include "harness/run/session.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/case_name.h"
#include "harness/core/clock.h"
#include "harness/core/stop.h"
#include "harness/core/system_files.h"
#include "harness/device/backend.h"
#include "harness/measure/pattern_list.h"
#include "harness/run/device_lock.h"
#include "harness/run/driver_keeper.h"
#include "harness/run/process.h"
#include "harness/run/process_environment.h"
#include "harness/run/progress.h"
#include "harness/run/rank.h"
#include "harness/run/session_folder.h"
#include "harness/run/supervisor.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

bool stop_asked() {
  return stop_signal != 0;
}

/// The case of a plan that has one; else nothing.
std::optional<std::string> only_case(const Plan& plan) {
  std::optional<std::string> only;
  for (const PlannedRun* const run : plan.runs()) {
    for (const PlannedCase& planned : run->cases) {
      if (only && *only != planned.name) return std::nullopt;
      only = planned.name;
    }
  }
  return only;
}

/// What session.json says from the beginning.
SessionRecord describe(const PlannedSession& session) {
  SessionRecord record;
  record.session_id = session.id;
  record.begin_utc = utc_now();
  record.command_line = session.options.command_line;
  record.seed = session.plan.seed;
  record.profile = session.options.profile;
  record.runs = session.runs;
  record.random_order = session.plan.random_order;
  record.filter = session.options.filter;
  record.tracing = {text_of(session.tracing.state), session.tracing.reason};
  record.launchgap_version = kVersion;
  record.build = {kBuildType, kCompiler, kGitRevision};
  record.host = host_facts();
  record.rank = session.rank;
  if (!session.options.doctor.is_null()) record.doctor = session.options.doctor;
  if (const auto& subject = session.options.investigates)
    record.investigates = {.session_id = *subject, .case_name = only_case(session.plan)};
  for (const std::string& note : session.machine.notes) record.notes.push_back({.text = note});
  std::set<std::string> patterns;
  for (const PlannedRun* const run : session.plan.runs()) {
    PlanEntry entry{
        run->device, run->replicate, std::string(name_of(run->arm)), run->process_config, {}};
    for (const PlannedCase& planned : run->cases) {
      entry.cases.push_back(planned.name);
      const CaseName name = CaseName::parse(planned.name);
      if (const std::string* const pattern = name.find("pattern")) patterns.insert(*pattern);
    }
    record.plan.push_back(std::move(entry));
  }
  for (const std::string& name : patterns) record.patterns.push_back(pattern_named(name).origin);
  return record;
}

/// What must be equal to compare, as far as it is known before the process starts.
Json fingerprint(const SessionRecord& session, const DeviceFacts& device, int side_by_side) {
  const HostFacts& host = session.host;
  Json json = {{"launchgap", kVersion},
               {"compiler", kCompiler},
               {"build_type", kBuildType},
               {"device", device.name},
               {"backend", device.backend}};
  if (device.compute_capability) json["compute_capability"] = *device.compute_capability;
  if (device.driver_version) json["driver_version"] = *device.driver_version;
  json["cpu_model"] = host.cpu_model;
  json["kernel"] = host.kernel;
  if (host.governor) json["governor"] = *host.governor;
  json["cores"] = host.cores;
  json["profile"] = name_of(session.profile);
  json["side_by_side"] = side_by_side;
  return json;
}

fs::path output_of(const PlannedSession& session) {
  if (session.options.output.empty()) return fs::path("results") / session.id;
  return own_folder(
      session.options.output, session.rank, node_name(own_environment()), session.devices);
}

/// A run that goes on, with its worker.
struct ActiveRun {
  ActiveRun(PlannedRun run, DeviceFacts& device, double timeout_s, Quarantine& quarantine)
      : device(device), supervisor(std::move(run), short_name(device), timeout_s, quarantine) {}

  DeviceFacts& device;
  RunSupervisor supervisor;
  int cpu = 0;
  int side_by_side = 1;
  std::unique_ptr<WorkerProcess> worker;
};

/// Does what the supervisors of the runs ask for.
class Session {
 public:
  explicit Session(PlannedSession planned)
      : session_(std::move(planned)),
        folder_(output_of(session_), describe(session_)),
        progress_(session_.plan.seconds(runs_at_once()), session_.plan.run_count()) {}

  SessionResult run() {
    result_.folder = folder_.path();
    folder_.write("running", session_.devices);
    patterns_ = folder_.keep_patterns();
    const SignalWatch watch;
    bool whole = true;
    try {
      measure();
    } catch (const std::exception& error) {
      // Nothing more can be kept, and what is there stays.
      fail(fmt::format("the session ends here: {}", error.what()));
      whole = false;
    }
    keeper_.stop();
    result_.stopped = stop_asked();
    folder_.record().end_utc = utc_now();
    try {
      folder_.write_last(whole && !result_.stopped ? "complete" : "stopped", session_.devices);
    } catch (const WriteError& error) {
      fail(error.what());
    }
    return std::move(result_);
  }

 private:
  void measure() {
    claim_devices();
    // To find out whether a keeper helps takes two processes, and one alone would gain less.
    if (session_.plan.run_count() > 1) {
      if (auto initialisation = keeper_.start(session_.devices, kProbeTimeoutS))
        folder_.record().initialisation = {std::move(*initialisation)};
    }
    folder_.write("running", session_.devices);
    for (const Batch& batch : session_.plan.batches) {
      if (stop_asked()) break;
      run_batch(batch);
    }
  }

  /// Processes on this node that measure at the same time, each its own devices.
  int local_ranks() const { return session_.rank ? session_.rank->local_ranks.value_or(1) : 1; }

  void fail(const std::string& line) {
    result_.failures.push_back(line);
    progress_.message(line);
  }

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
      } catch (const DeviceHeld& error) {
        device.usable = false;
        device.reason = error.what() + shared_device_remedy(session_.rank);
      } catch (const Error& error) {
        device.usable = false;
        device.reason = error.what();
      }
    }
    check_devices(locked, kProbeTimeoutS, stop_asked);
    for (const DeviceFacts& device : session_.devices) {
      if (!device.usable)
        fail(fmt::format("{}: not measured: {}", short_name(device), device.reason));
    }
  }

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
    const std::size_t at_once = std::min(waiting.size(), runs_at_once());
    std::optional<NodeTurn> turn;
    const bool alone = !waiting.empty() && waiting.front().alone;
    if (local_ranks() > 1 && !waiting.empty()) {
      progress_.show("waits for its turn on the node");
      turn.emplace(alone, stop_asked);
    }
    std::vector<std::unique_ptr<ActiveRun>> active;
    while ((!waiting.empty() || !active.empty()) && !stop_asked()) {
      while (!waiting.empty() && active.size() < at_once) {
        DeviceFacts& device = device_of(waiting.front().device);
        auto run = std::make_unique<ActiveRun>(
            std::move(waiting.front()), device, session_.options.timeout_s, quarantine_);
        waiting.pop_front();
        run->cpu = choose_cpu(device, active);
        run->side_by_side = static_cast<int>(at_once) * (alone ? 1 : local_ranks());
        perform(*run, run->supervisor.begin());
        if (!run->supervisor.over()) active.push_back(std::move(run));
      }
      std::vector<WorkerProcess*> workers;
      for (const auto& run : active) workers.push_back(run->worker.get());
      wait_for_any(workers, progress_.on_terminal() ? 100 : 1000);
      for (const auto& run : active) attend(*run);
      std::erase_if(active, [](const auto& run) { return run->supervisor.over(); });
    }
    for (const auto& run : active) inform(*run, event::Stopped{});
  }

  /// The host's launching thread has the first CPU (its queue has the last); a GPU's one that is
  /// near it and free.
  static int choose_cpu(const DeviceFacts& device,
                        const std::vector<std::unique_ptr<ActiveRun>>& active) {
    if (backend_of(device).launches_from_first_cpu) return allowed_cpus().front();
    std::vector<int> taken;
    for (const auto& run : active) taken.push_back(run->cpu);
    return free_cpu(near_cpus(device), allowed_cpus(), taken);
  }

  /// Tells a run's supervisor what happened since.
  void attend(ActiveRun& run) {
    const auto end = run.worker->ended();  // before its last messages are read
    for (Message& message : receive_messages(*run.worker))
      inform(run, event::Said{std::move(message)});
    if (end) return inform(run, event::Ended{*end, run.worker->last_output()});
    const auto& current = run.supervisor.current();
    progress_.show(
        fmt::format("{}  {}", short_name(run.device), current ? current->name : "starting"));
    inform(run, event::Tick{});
  }

  void inform(ActiveRun& run, const RunEvent& event) {
    perform(run, run.supervisor.handle(event, now_ns()));
  }

  void perform(ActiveRun& run, const Actions& actions) {
    for (const Action& action : actions) {
      std::visit(
          Overloaded{[&](const action::Start& start) { start_worker(run, start); },
                     [&](const action::Kill& kill) {
                       inform(run, event::Killed{run.worker->kill(kill.wait_s)});
                     },
                     [&](const action::Abandon&) { abandoned_.push_back(std::move(run.worker)); },
                     [&](const action::Write& write) { append(run, write); },
                     [&](const action::GiveUpDevice& lost) {
                       run.device.usable = false;
                       run.device.reason = lost.reason;
                       fail(fmt::format("{}: {}", short_name(run.device), lost.reason));
                     },
                     [&](const action::Fail& failure) { fail(failure.line); },
                     [&](const action::Say& remark) { progress_.message(remark.line); },
                     [&](const action::Advance& advance) { progress_.advance(advance.seconds); },
                     [&](const action::EndSession& end) { throw WriteError(end.error); },
                     [&](const action::Finish&) { progress_.run_done(); }},
          action);
    }
  }

  void start_worker(ActiveRun& run, const action::Start& start) {
    const PlannedRun& planned = run.supervisor.run();
    job::Run job;
    job.backend = run.device.backend;
    job.uuid = run.device.uuid;
    job.session_id = session_.id;
    job.node = folder_.record().host.node;
    job.replicate = planned.replicate;
    job.arm = planned.arm;
    job.process_config = planned.process_config;
    job.attempt = start.attempt;
    job.trace_required = session_.options.trace == TraceOption::on;
    job.keep_events = session_.options.keep_events;
    job.seed = session_.plan.seed;
    job.profile = session_.options.profile;
    job.side_by_side = run.side_by_side;
    job.cpus = {run.cpu};
    job.near_cpus = near_cpus(run.device);
    job.records = folder_.records(planned, run.device, start.attempt);
    job.fingerprint = fingerprint(folder_.record(), run.device, run.side_by_side);
    job.cases = start.cases;
    job.skipped = start.skipped;
    job.tool = session_.options.tool;
    job.patterns = patterns_;
    if (planned.process_config.loading() == CodeLoading::jit_cached) {
      const JitCaches::Warmed warmed =
          jit_caches_.warm(run.device, planned.process_config, kProbeTimeoutS);
      job.jit_cache = warmed.folder;
      if (!warmed.problem.empty()) {
        progress_.message(
            fmt::format("{}: the driver's cache of compiled kernels cannot be filled: {}",
                        short_name(run.device),
                        warmed.problem));
      }
    }
    try {
      run.worker = std::make_unique<WorkerProcess>(
          to_json(job),
          worker_environment(run.device, beside(run.device, planned.process_config.gpus() - 1)));
    } catch (const Error& error) {
      return inform(run, event::CannotStart{error.what()});
    }
    inform(run, event::Started{});
  }

  /// The next `count` GPUs of the session that can be used, or as many as there are.
  std::vector<std::string> beside(const DeviceFacts& device, int count) const {
    std::vector<DeviceFacts> others = session_.devices;
    std::rotate(
        others.begin(), std::ranges::find(others, device.uuid, &DeviceFacts::uuid), others.end());
    std::vector<std::string> uuids;
    for (const DeviceFacts& other : others) {
      if (std::ssize(uuids) == count) break;
      if (other.uuid != device.uuid && other.backend == device.backend && other.usable)
        uuids.push_back(other.uuid);
    }
    return uuids;
  }

  void append(const ActiveRun& run, const action::Write& write) const {
    RecordWriter writer = folder_.reopen_records(run.supervisor.run(), run.device, write.attempt);
    for (const auto& record : write.records)
      std::visit([&](const auto& known) { writer.write(record_to_json(known)); }, record);
  }

  PlannedSession session_;
  SessionFolder folder_;
  std::vector<std::string> patterns_;  // their files in the folder
  Progress progress_;
  SessionResult result_;
  std::vector<DeviceLock> locks_;
  Quarantine quarantine_;
  std::vector<std::unique_ptr<WorkerProcess>> abandoned_;
  DriverKeeper keeper_;
  JitCaches jit_caches_;
};

}  // namespace

ExitCode SessionResult::exit_code() const {
  if (stopped) return ExitCode::stopped_early;
  return failures.empty() ? ExitCode::done : ExitCode::failed;
}

SessionResult run_session(PlannedSession session) {
  return Session(std::move(session)).run();
}

}  // namespace launchgap
