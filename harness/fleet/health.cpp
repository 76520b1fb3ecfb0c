#include "harness/fleet/health.h"

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
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/doctor/doctor.h"
#include "harness/regression/history.h"
#include "harness/run/device_lock.h"
#include "harness/run/rank.h"
#include "harness/run/session.h"
#include "harness/stats/stats.h"
#include "harness/summary/published.h"
#include "harness/summary/summary.h"

namespace launchgap::fleet {
namespace {

/// "GPU 2 (NVIDIA A100, GPU-5f3a…, 0000:07:00.0)".
std::string name_of(const DeviceFacts& device) {
  std::vector<std::string> parts;
  for (const std::string& part : {device.name, device.uuid, device.pci_bus_id.value_or("")}) {
    if (!part.empty()) parts.push_back(printable(part, 80));
  }
  return fmt::format("GPU {} ({})", device.index, fmt::join(parts, ", "));
}

/// What a finding of the doctor means; nothing for one that work can go on with.
std::optional<HealthState> state_of(const Finding& finding, bool any_usable) {
  if (finding.code == "ecc-uncorrectable" || finding.code == "memory-remap-failed")
    return HealthState::critical;
  if (finding.code == "memory-remap-pending") return HealthState::warning;
  if (finding.severity != Severity::prevents) return std::nullopt;
  return any_usable ? HealthState::warning : HealthState::critical;
}

struct Reason {
  HealthState state;
  std::string text;
};

void judge_gpu(const GpuHealth& gpu,
               const std::vector<GpuHealth>& all,
               const std::string& not_measured,
               std::vector<Reason>& why) {
  const std::string name = name_of(gpu.device);
  if (!gpu.problem.empty()) {
    why.push_back(
        {HealthState::critical, fmt::format("{}: {}", name, printable(gpu.problem, 300))});
    return;
  }
  if (!not_measured.empty() && gpu.busy.empty()) return;  // which is said once
  if (!gpu.busy.empty() || !gpu.roundtrip_ns) {
    // One that a session has is as well as that session finds it.
    why.push_back({gpu.busy.empty() ? HealthState::warning : HealthState::ok,
                   fmt::format("{} not measured: {}",
                               name,
                               printable(gpu.busy.empty() ? "no answer in time" : gpu.busy, 200))});
    return;
  }
  std::string of_what;
  const std::optional<double> score = score_of(gpu, all, of_what);
  if (!gpu.history_ns && gpu.published_score && *gpu.published_score < kPublishedScore) {
    why.push_back({HealthState::warning,
                   fmt::format("{}: launch and wait takes {}, and is {} times as fast as what is "
                               "published of its model",
                               name,
                               quantity(gpu.roundtrip_ns, "ns"),
                               times_text(*gpu.published_score))});
  }
  if (!score || *score >= kWarningScore) return;
  why.push_back({*score < kCriticalScore ? HealthState::critical : HealthState::warning,
                 fmt::format("{}: launch and wait takes {}, and is {} times as fast as {}",
                             name,
                             quantity(gpu.roundtrip_ns, "ns"),
                             times_text(*score),
                             of_what)});
}

/// For Nagios: a value is a label in quotes, and a number with its unit.
std::string measured_text(const std::vector<GpuHealth>& gpus) {
  std::string text;
  for (const GpuHealth& gpu : gpus) {
    if (gpu.roundtrip_ns)
      text +=
          fmt::format(" '{}'={:.2f}us", file_name_part(gpu.device.uuid), *gpu.roundtrip_ns / 1000);
  }
  return text.empty() ? "" : " |" + text;
}

}  // namespace

std::string_view name_of(HealthState state) {
  constexpr std::string_view kNames[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return kNames[static_cast<std::size_t>(state)];
}

std::optional<double> score_of(const GpuHealth& gpu,
                               const std::vector<GpuHealth>& all,
                               std::string& of_what) {
  if (!gpu.roundtrip_ns || !(*gpu.roundtrip_ns > 0)) return std::nullopt;
  std::optional<double> least;
  const auto take = [&](double expected_ns, const char* what) {
    const double score = expected_ns / *gpu.roundtrip_ns;
    if (least && *least <= score) return;
    least = score;
    of_what = fmt::format("{} ({})", what, quantity(expected_ns, "ns"));
  };
  if (gpu.history_ns) take(*gpu.history_ns, "in its best night");
  std::vector<double> alike;
  for (const GpuHealth& other : all) {
    if (other.device.name == gpu.device.name && other.roundtrip_ns)
      alike.push_back(*other.roundtrip_ns);
  }
  if (alike.size() >= 3) take(*stats::median(alike), "the median of its kind on this node");
  return least;
}

HealthAnswer judge(const NodeHealth& node) {
  std::vector<Reason> why;
  if (!node.problem.empty()) why.push_back({HealthState::critical, printable(node.problem, 300)});
  if (!node.not_measured.empty()) {
    why.push_back({HealthState::warning,
                   fmt::format("no launch was timed: {}", printable(node.not_measured, 300))});
  }
  if (!node.history_problem.empty()) {
    why.push_back(
        {HealthState::warning,
         fmt::format("its nights are not known: {}", printable(node.history_problem, 300))});
  }
  const bool any_usable =
      std::ranges::any_of(node.gpus, [](const GpuHealth& gpu) { return gpu.problem.empty(); });
  for (const Finding& finding : node.findings) {
    const auto state = state_of(finding, any_usable);
    if (!state) continue;
    why.push_back({*state, fmt::format("{} [{}]", printable(finding.sentence, 300), finding.code)});
  }
  const auto expected = static_cast<std::size_t>(node.expected_gpus.value_or(0));
  if (node.gpus.size() < expected) {
    why.push_back({HealthState::critical,
                   fmt::format("{} of {} GPUs are found", node.gpus.size(), expected)});
  }
  for (const GpuHealth& gpu : node.gpus) judge_gpu(gpu, node.gpus, node.not_measured, why);
  HealthAnswer answer;
  if (node.gpus.empty() && why.empty())
    why.push_back({HealthState::unknown, "this machine has no GPU to look at"});
  std::ranges::stable_sort(
      why, std::ranges::greater(), [](const Reason& reason) { return reason.state; });
  if (!why.empty()) answer.state = why.front().state;
  std::vector<std::string> texts;
  for (const Reason& reason : why) texts.push_back(reason.text);
  if (answer.state == HealthState::ok) {
    texts.insert(texts.begin(), fmt::format("{} well", counted(node.gpus.size(), "GPU")));
  }
  std::string said = fmt::format("{}", fmt::join(texts, "; "));
  std::ranges::replace(said, '|', '/');  // behind it Nagios reads numbers
  answer.line = fmt::format("launchgap {} {}: {}{}",
                            name_of(answer.state),
                            printable(node.node, 60),
                            said,
                            measured_text(node.gpus));
  return answer;
}

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
