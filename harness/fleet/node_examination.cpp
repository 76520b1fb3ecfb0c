// What `launchgap health` does on the node.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>
#include <sys/time.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/stop.h"
#include "harness/core/system_files.h"
#include "harness/device/backend.h"
#include "harness/doctor/doctor.h"
#include "harness/fleet/health.h"
#include "harness/regression/history.h"
#include "harness/run/device_lock.h"
#include "harness/run/rank.h"
#include "harness/run/session.h"
#include "harness/summary/published.h"
#include "harness/summary/summary.h"

namespace launchgap::fleet {
namespace {

constexpr const char* kCase = "launch/null/api:driver/mode:idle";
/// What was published is of these: launches that are each waited for, by the wall clock.
constexpr const char* kPublishedCases = "launch/cscs/wait:each$|^launch/superbench/mode:wall";
constexpr const char* kMetric = "roundtrip_ns";

/// Has run_session() stop at a time, as a signal of the user would. Again and again, since a
/// session that begins forgets the signals before it.
class Deadline {
 public:
  explicit Deadline(double in_s) {
    struct sigaction action {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    sigaction(SIGALRM, &action, &before_);
    const double first = std::max(in_s, 0.01);
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(first);
    timer.it_value.tv_usec =
        static_cast<suseconds_t>((first - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
    timer.it_interval.tv_usec = 200'000;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ~Deadline() {
    const itimerval none{};
    setitimer(ITIMER_REAL, &none, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
    if (stop_signal == SIGALRM) stop_signal = 0;
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  struct sigaction before_ {};
};

class Examination {
 public:
  explicit Examination(const HealthOptions& options) : options_(options) {
    node_.node = node_name(own_environment());
    node_.expected_gpus = options.expected_gpus;
  }

  NodeHealth examine() {
    // Of the node it is asked, and a prolog has the variable of the job that comes.
    unsetenv("CUDA_VISIBLE_DEVICES");
    const doctor::Diagnosis diagnosis = doctor::diagnose_machine({});
    node_.findings = diagnosis.findings;
    if (!diagnosis.any_gpu_usable) return std::move(node_);
    open_gpus();
    if (std::ranges::any_of(node_.gpus, is_open)) launch();
    try {
      look_up();
    } catch (const Error& error) {  // no reason to keep work from the node
      node_.history_problem = error.what();
    }
    return std::move(node_);
  }

 private:
  static bool is_open(const GpuHealth& gpu) { return gpu.problem.empty() && gpu.busy.empty(); }

  double left_s() const { return options_.limit_s - static_cast<double>(now_ns() - begin_) * 1e-9; }

  void open_gpus() {
    // Of the limit a share, so that those that answer are measured where one does not.
    const double each_s = std::max(options_.limit_s / 4, 1.0);
    std::vector<DeviceFacts> gpus;
    try {
      std::ranges::copy_if(
          find_devices(std::min(each_s, left_s())).devices, std::back_inserter(gpus), is_gpu);
    } catch (const Error& error) {
      node_.problem = error.what();
      return;
    }
    std::vector<DeviceFacts*> free;
    for (DeviceFacts& gpu : gpus) {
      GpuHealth& own = node_.gpus.emplace_back();
      own.device = gpu;
      try {
        const DeviceLock lock(gpu.uuid);
        free.push_back(&gpu);
      } catch (const DeviceHeld& error) {
        own.busy = error.what();
      } catch (const Error& error) {
        own.busy = node_.not_measured = error.what();
      }
    }
    check_devices(free, std::min(each_s, left_s()));
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (!gpus[i].usable) node_.gpus[i].problem = gpus[i].reason;
    }
  }

  /// A session of its own, in a folder that is gone afterwards.
  void launch() {
    const TemporaryFolder folder("launchgap-health-");
    if (folder.path().empty()) {
      node_.not_measured = "there is no folder for temporary files: see TMPDIR and /tmp";
      return;
    }
    setenv("CUDA_CACHE_PATH", (folder.path() / "jit").c_str(), 1);
    constexpr double kToTidyUpS = 6;  // what hangs takes so long to be killed
    RunOptions run;
    std::vector<std::string> uuids;
    for (const GpuHealth& gpu : node_.gpus) {
      if (is_open(gpu)) uuids.push_back(gpu.device.uuid);
    }
    run.devices = fmt::format("{}", fmt::join(uuids, ","));
    run.filter = fmt::format("^{}$|^{}$", kCase, kPublishedCases);
    run.runs = 1;
    run.trace = TraceOption::off;
    run.timeout_s = std::max(options_.limit_s / 5, 1.0);
    run.output = folder.path() / "session";
    try {
      const Deadline deadline(left_s() - kToTidyUpS);
      PlannedSession planned = plan_session(run);
      planned.rank.reset();  // whoever started the check: its folder is its own
      run_session(std::move(planned));
    } catch (const Error& error) {  // a full disk, say: that is not the GPUs' fault
      node_.not_measured = error.what();
      return;
    }
    const SessionData session = read_session(run.output);
    const std::vector<SummaryRow> rows = summarise(session);
    for (GpuHealth& gpu : node_.gpus) {
      if (!is_open(gpu)) continue;
      if (const DeviceFacts* const facts = session.device(gpu.device.uuid);
          facts && !facts->usable) {
        // Somebody took it since it was opened: it is as well as that session finds it.
        (facts->reason.starts_with(kHeld) ? gpu.busy : gpu.problem) = facts->reason;
      }
      for (const SummaryRow& row : rows) {
        if (row.key.device != gpu.device.uuid) continue;
        if (row.metric == kMetric) gpu.roundtrip_ns = row.p50;
        if (row.status == Status::failed || row.status == Status::invalid) gpu.problem = row.reason;
      }
      for (const RunInfo& one : session.runs) {
        if (one.device == gpu.device.uuid && one.other_processes.value_or(0) > 0) {
          gpu.busy = "another program computes on it";
          gpu.roundtrip_ns.reset();
        }
      }
    }
    for (const Published& value : published(session, rows)) {
      if (!value.same_model || value.theirs->quantity != "launch_sync_roundtrip") continue;
      for (GpuHealth& gpu : node_.gpus) {
        if (gpu.device.uuid == value.ours->key.device)
          gpu.published_score = std::max(gpu.published_score.value_or(0), 1 / value.ratio());
      }
    }
  }

  /// The best night of each GPU.
  void look_up() {
    if (options_.history.empty()) return;
    constexpr int kPatienceMs = 1000;  // of a night that is just being added to it
    const regression::History history(
        options_.history, regression::History::Use::read, kPatienceMs);
    std::set<std::int64_t> fingerprints;
    for (const auto& [number, fingerprint] : history.fingerprints()) fingerprints.insert(number);
    for (GpuHealth& gpu : node_.gpus) {
      const regression::SeriesKey key{
          {gpu.device.uuid, "plain", ProcessConfig("launch"), CaseName::parse(kCase)}, kMetric};
      constexpr std::size_t kNights = 60;
      const auto nights = history.before(
          key,
          fingerprints,
          std::numeric_limits<std::int64_t>::max(),
          [seen = std::size_t{0}](const auto&) mutable { return ++seen == kNights; });
      for (const regression::KeptPoint& night : nights) {
        if (can_be_compared_with(night))
          gpu.history_ns = std::min(gpu.history_ns.value_or(night.night.value), night.night.value);
      }
    }
  }

  const HealthOptions& options_;
  const std::int64_t begin_ = now_ns();
  NodeHealth node_;
};

}  // namespace

NodeHealth examine_node(const HealthOptions& options) {
  return Examination(options).examine();
}

}  // namespace launchgap::fleet
