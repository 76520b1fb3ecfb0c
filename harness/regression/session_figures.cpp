#include "harness/regression/session_figures.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/device/backend.h"
#include "harness/rules/two_sessions.h"
#include "harness/stats/random_effects.h"
#include "harness/stats/stats.h"
#include "harness/summary/case_rates.h"
#include "harness/summary/selections.h"
#include "harness/summary/summary.h"

namespace launchgap::regression {
namespace {

/// What holds clocks down and is not how a GPU usually works. The power limit is not among it: a
/// large product of matrices meets it on any day.
constexpr std::string_view kThrottleCounters[] = {"held_by_sw_thermal_ns",
                                                  "held_by_hw_thermal_ns",
                                                  "held_by_power_brake_ns"};
/// The same as bits of clock_reasons: slowed down by hardware; heat, by software and by hardware;
/// power brake.
constexpr std::uint64_t kThrottleReasons = 0x8 | 0x20 | 0x40 | 0x80;
constexpr double kThrottledShare = 0.01;

constexpr std::size_t kLeastForTail = 100;

/// Cases and processes whose clocks were held down, and for which share of the time.
std::map<CaseRun, std::string> throttled_cases(const SessionData& session) {
  std::map<CaseRun, std::string> throttled;
  for (const auto& [key, readings] : telemetry_by_case(session)) {
    std::uint64_t held_by = 0;
    for (const TelemetryInfo* const reading : readings) {
      // Before the first block it may still be idle, and what holds the clocks down then is that.
      const auto reasons = reading->values.find("clock_reasons");
      if (reading->block >= 0 && reasons != reading->values.end() && reasons->second >= 0 &&
          reasons->second < 0x1p53)
        held_by |= static_cast<std::uint64_t>(reasons->second);
    }
    const TelemetryInfo &first = *readings.front(), &last = *readings.back();
    double held_ns = 0;
    for (const std::string_view counter : kThrottleCounters) {
      const auto before = first.values.find(std::string(counter));
      const auto after = last.values.find(std::string(counter));
      if (before != first.values.end() && after != last.values.end())
        held_ns += std::max(0.0, after->second - before->second);
    }
    const auto time_ns = static_cast<double>(last.at_ns - first.at_ns);
    if (time_ns > 0 && held_ns >= kThrottledShare * time_ns) {
      throttled[key] = fmt::format(
          "throttled: heat or a power brake held the clocks down for "
          "{:.0f} % of the time",
          100 * std::min(1.0, held_ns / time_ns));
    } else if (held_by & kThrottleReasons) {
      throttled[key] = fmt::format("throttled: clock_reasons {:#x}", held_by);
    }
  }
  return throttled;
}

/// All attempts of each, and what they know of the fingerprint together: libraries that a case
/// loads are told by the end of a process, which one that crashed does not have.
struct Attempts {
  std::vector<const RunInfo*> runs;
  Fingerprint fingerprint;
};

std::map<RunId, Attempts> attempts_by_run(const SessionData& session) {
  std::map<RunId, Attempts> attempts;
  for (const RunInfo& run : session.runs) {
    Attempts& of_run = attempts[run];
    of_run.runs.push_back(&run);
    for (const auto& [key, value] : fingerprint_from_json(run.fingerprint))
      of_run.fingerprint.insert_or_assign(key, value);
  }
  return attempts;
}

/// What two processes both know, and know differently.
std::vector<KeyChange> contradictions(const Fingerprint& a, const Fingerprint& b) {
  std::vector<KeyChange> changes = differences(a, b);
  std::erase_if(changes,
                [](const KeyChange& change) { return change.from.empty() || change.to.empty(); });
  return changes;
}

constexpr std::string_view kDelayVariable = "environment.LAUNCHGAP_DELAY_NS";

/// Why nothing of a process counts; empty if it does.
std::string problem_of(const RunInfo& run, const Fingerprint& fingerprint, Counted counted) {
  if (!run.measured_under_tool.empty())
    return fmt::format("run under a tool: {}", run.measured_under_tool);
  if (run.other_processes.value_or(0) > 0) {
    return fmt::format("shared: {} other process{} on the device",
                       *run.other_processes,
                       *run.other_processes == 1 ? "" : "es");
  }
  if (!counted.slowed_down && fingerprint.contains(std::string(kDelayVariable)))
    return "slowed down on purpose";
  if (!counted.simulated && run.simulated) return "simulated";
  return "";
}

RunFigures figures_of_run(int replicate, std::vector<double> samples, double& tick) {
  RunFigures figures;
  figures.replicate = replicate;
  const std::vector<std::vector<double>> group = {samples};
  if (const auto within = stats::random_effects(group).within_sd)
    figures.cv = stats::lognormal_cv(within->value);
  std::ranges::sort(samples);
  figures.median = *stats::quantile(samples, 0.5);
  figures.p99 = stats::quantile(samples, 0.99);
  if (samples.size() >= kLeastForTail && figures.median > 0)
    figures.tail = *stats::quantile(samples, 0.99) / figures.median;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const double gap = samples[i] - samples[i - 1];
    if (gap > 0 && (tick == 0 || gap < tick)) tick = gap;
  }
  return figures;
}

/// Puts the figures of a session together.
class Reader {
 public:
  Reader(const SessionData& session, Counted counted)
      : session_(session),
        counted_(counted),
        throttled_(throttled_cases(session)),
        runs_(attempts_by_run(session)),
        impossible_(impossible_cases(session)),
        algorithms_(algorithms_of_cases(session)) {}

  SessionFigures read() {
    figures_.session_id = session_.id;
    figures_.node = session_.host.node;
    figures_.device_nodes = session_.nodes;
    for (const DeviceFacts& device : session_.devices)
      figures_.device_names[device.uuid] = device.name;
    for (const RunInfo& run : session_.runs) {
      figures_.simulated = figures_.simulated || run.simulated;
      if (run.delay_ns) figures_.delay_ns = run.delay_ns;
      if (run.delay_problem) figures_.delay_problem = *run.delay_problem;
      if (!run.begin_utc.empty() &&
          (figures_.begin_utc.empty() || run.begin_utc < figures_.begin_utc))
        figures_.begin_utc = run.begin_utc;
    }
    for (const auto& [key, data] : session_.cases) {
      if (!key.process_config.is_observer()) add(key, data);
    }
    std::ranges::sort(figures_.metrics, {}, &MetricFigures::key);
    figures_.invalid = problem_of_all();
    return std::move(figures_);
  }

 private:
  static bool counts(const CaseKey& key, const std::string& metric) {
    if (key.arm != name_of(Arm::traced)) return true;
    const Metric* const known = find_metric(metric);
    return known && known->source == "trace";
  }

  /// The gravest outcome of a case, unless it is that the device cannot do it.
  static std::string failure_of(const CaseData& data) {
    for (const auto& [replicate, outcome] : data.outcomes) {
      if (!outcome.status || *outcome.status == Status::ok ||
          *outcome.status == Status::unsupported)
        continue;
      return fmt::format("{} in run {}: {}", name_of(*outcome.status), replicate, outcome.reason);
    }
    return "";
  }

  void add(const CaseKey& key, const CaseData& data) {
    std::string failure = failure_of(data);
    const auto impossible = impossible_.find(key);
    if (failure.empty() && impossible != impossible_.end()) failure = impossible->second;
    bool any = false;
    for (const std::string& metric : data.metric_order) {
      if (!counts(key, metric)) continue;
      const auto samples = data.samples.find(metric);
      if (samples == data.samples.end()) continue;
      MetricFigures figures;
      figures.key = {key, metric};
      figures.invalid = failure;
      if (const auto known = algorithms_.find(key); known != algorithms_.end())
        figures.algorithms = known->second;
      std::vector<double> all;
      for (const auto& [replicate, values] : samples->second) {
        if (values.empty()) continue;
        figures.runs.push_back(figures_of_run(replicate, values, figures.tick));
        all.insert(all.end(), values.begin(), values.end());
        look_at_run(key, replicate, figures);
      }
      if (figures.runs.empty()) continue;
      any = true;
      figures.modes = modes_within_runs(samples->second);
      std::ranges::sort(all);
      figures.p99 = stats::quantile(all, 0.99);
      figures.samples = all.size();
      figures_.metrics.push_back(std::move(figures));
    }
    if (any || failure.empty()) return;
    MetricFigures without_result;
    without_result.key = {key, ""};
    without_result.invalid = failure;
    figures_.metrics.push_back(std::move(without_result));
  }

  /// Whether the process counts, and what its fingerprint is.
  void look_at_run(const CaseKey& key, int replicate, MetricFigures& figures) {
    const CaseRun case_run = key.in_run(replicate);
    const auto found = runs_.find(case_run.run);
    if (found == runs_.end()) return;
    const Fingerprint& fingerprint = found->second.fingerprint;
    std::string problem;
    for (const RunInfo* const attempt : found->second.runs) {
      if (problem.empty()) problem = problem_of(*attempt, fingerprint, counted_);
    }
    const auto throttled = throttled_.find(case_run);
    if (problem.empty() && throttled != throttled_.end()) problem = throttled->second;
    if (problem.empty() && figures.runs.size() > 1) {
      const auto changes = told_once(contradictions(figures.fingerprint, fingerprint));
      if (!changes.empty()) problem = fmt::format("its processes differ: {}", text_of(changes));
    }
    figures.fingerprint.insert(fingerprint.begin(), fingerprint.end());
    if (figures.invalid.empty() && !problem.empty())
      figures.invalid = fmt::format("{} (run {})", problem, replicate);
  }

  std::string problem_of_all() const {
    if (!counted_.simulated && figures_.simulated)
      return "it is simulated: measured on fake CUDA libraries";
    if (session_.state == "running") return "it has not ended: it still runs, or was killed";
    if (figures_.metrics.empty()) return "it has no results";
    return problem_of_begin();
  }

  /// A session has its place among others by when it began.
  std::string problem_of_begin() const {
    constexpr std::int64_t kAheadS = std::int64_t{24} * 3600;
    constexpr std::int64_t k2020 =
        1'577'836'800;  // nobody had launchgap before; recordings are older
    const auto is_recorded = [](const MetricFigures& one) {
      return one.key.where.arm == kRecorded;
    };
    if (figures_.begin_utc.empty()) return "";  // a recording without dates
    const std::string shown = printable(figures_.begin_utc, 40);
    const auto begin_s = parse_utc(figures_.begin_utc);
    if (!begin_s)
      return fmt::format("'{}' is no time at which it can have begun, as 2026-11-22T03:00:00Z is",
                         shown);
    if (*begin_s < k2020 && std::ranges::none_of(figures_.metrics, is_recorded))
      return fmt::format("it began at {}, before 2020: the machine's clock was not set", shown);
    if (*begin_s > std::time(nullptr) + kAheadS)
      return fmt::format("it began at {}, in the future: the machine's clock is not set", shown);
    return "";
  }

  const SessionData& session_;
  Counted counted_;
  std::map<CaseRun, std::string> throttled_;
  std::map<RunId, Attempts> runs_;
  std::map<CaseKey, std::string> impossible_;  // and why
  std::map<CaseKey, std::set<std::string>> algorithms_;
  SessionFigures figures_;
};

}  // namespace

const std::string& SessionFigures::node_of(const std::string& device) const {
  const auto found = device_nodes.find(device);
  return found == device_nodes.end() ? node : found->second;
}

double MetricFigures::value() const {
  std::vector<double> medians;
  for (const RunFigures& run : runs) medians.push_back(run.median);
  return *stats::median(std::move(medians));
}

std::optional<double> MetricFigures::within_run_cv() const {
  std::vector<double> values;
  for (const RunFigures& run : runs) {
    if (run.cv) values.push_back(*run.cv);
  }
  return stats::median(std::move(values));
}

std::optional<double> MetricFigures::tail() const {
  std::vector<double> values;
  for (const RunFigures& run : runs) {
    if (run.tail) values.push_back(*run.tail);
  }
  if (values.empty() && p99 && samples >= kLeastForTail && !runs.empty() && value() > 0)
    return *p99 / value();
  return stats::median(std::move(values));
}

std::optional<double> MetricFigures::between_run_cv() const {
  if (runs.size() < 3) return std::nullopt;
  std::vector<double> logs;
  for (const RunFigures& run : runs) {
    if (!(run.median > 0)) return std::nullopt;
    logs.push_back(std::log(run.median));
  }
  const auto sd = stats::standard_deviation(logs);
  return sd ? std::optional(stats::lognormal_cv(*sd)) : std::nullopt;
}

SessionFigures figures_of(const SessionData& session, Counted counted) {
  return Reader(session, counted).read();
}

namespace {

constexpr double kLeastOfLaunchNs = 100;

bool is_launch_on_gpu(const MetricFigures& figures) {
  return figures.key.where.name.family() == "launch" && unit_of(figures.key.metric) == "ns" &&
         backend_of_uuid(figures.key.where.device).is_gpu;
}

/// A recorded job is one process, or as many as it has ranks.
bool too_few(const MetricFigures& figures) {
  return figures.key.where.arm != kRecorded && figures.runs.size() < rules::kFewestRuns;
}

}  // namespace

std::optional<std::string> why_never_judged(const std::string& metric) {
  const Metric* const known = find_metric(metric);
  if (!known) return "this launchgap does not know the metric";
  if (!known->function_of.empty())
    return fmt::format("it is computed from {}, which is judged", known->function_of);
  if (known->unit == "1") return "it has no unit, and its ratio says little";
  return std::nullopt;
}

std::optional<std::string> why_only_watched(const MetricFigures& figures) {
  if (auto why = why_never_judged(figures.key.metric)) return why;
  if (figures.key.where.name.benchmark == "launch/interference")
    return "it is compared with quiet launches of the same process, in interference.csv";
  if (figures.runs.empty()) return "it has no values";
  for (const RunFigures& run : figures.runs) {
    if (!std::isfinite(run.median)) return "a median of it is not finite";
    if (!(run.median > 0)) return "a median is 0 or negative, so no ratio can be formed";
  }
  const double value = figures.value();
  if (value < kLeastTicks * figures.tick) {
    return fmt::format("its median is {:.3g} ticks of {:.3g} {}: one tick is {:.1f} % of it",
                       value / figures.tick,
                       figures.tick,
                       unit_of(figures.key.metric),
                       100 * figures.tick / value);
  }
  return std::nullopt;
}

double least_change(const MetricFigures& base, double share) {
  const double value = base.value();
  const double least = is_launch_on_gpu(base) ? kLeastOfLaunchNs : 0;
  return std::max({share, base.tick / value, least / value});
}

double sign_of_worse(const MetricFigures& figures) {
  return metric(figures.key.metric).direction == Direction::lower_is_better ? 1 : -1;
}

Result measured_result(const SessionFigures& session, const MetricFigures& figures) {
  Result result;
  result.key = figures.key;
  result.node = session.node_of(figures.key.where.device);
  const auto name = session.device_names.find(figures.key.where.device);
  if (name != session.device_names.end()) result.device_name = name->second;
  result.runs = figures.runs.size();
  if (!figures.runs.empty()) result.value = figures.value();
  result.p99 = figures.p99;
  if (!session.invalid.empty()) {
    result.verdict = Verdict::invalid;
    result.reason = session.invalid;
  } else if (!figures.invalid.empty()) {
    result.verdict = Verdict::invalid;
    result.reason = figures.invalid;
  } else if (too_few(figures)) {
    // Few processes are traced unless many are measured; that is no fault of the session.
    result.verdict =
        figures.key.where.arm == name_of(Arm::plain) ? Verdict::invalid : Verdict::watch;
    result.reason =
        fmt::format("{} of {} processes that it takes", figures.runs.size(), rules::kFewestRuns);
  } else if (const auto why = why_only_watched(figures)) {
    result.verdict = Verdict::watch;
    result.reason = *why;
  }
  return result;
}

std::string invalid_as_a_whole(const SessionFigures& session, std::span<const Result> results) {
  if (!session.invalid.empty()) return session.invalid;
  const auto is_invalid = [](const Result& result) { return result.verdict == Verdict::invalid; };
  if (results.empty() || !std::ranges::all_of(results, is_invalid)) return "";
  return fmt::format("no metric of it is valid; the first: {}", results.front().reason);
}

}  // namespace launchgap::regression
