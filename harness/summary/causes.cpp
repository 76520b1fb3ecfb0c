#include "harness/summary/causes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/stats/stats.h"
#include "harness/summary/stragglers.h"

namespace launchgap {
namespace {

constexpr double kCertain = 0.01;
constexpr std::size_t kMostNamed = 3;

std::string time_text(double nanoseconds) {
  return quantity(nanoseconds, "ns");
}

/// "3e-05", and never 0.
std::string chance_text(double chance) {
  return chance < 1e-12 ? "below 1e-12" : fmt::format("{:.1g}", chance);
}

std::vector<Evidence> one_line(std::string text) {
  return {Evidence(std::move(text))};
}

std::string name_text(std::string_view name) {
  return printable(name, 60);
}

/// One process on one GPU.
class RecordedProcess {
 public:
  RecordedProcess(const SessionData& session, const JobInfo& job) : job(job.record), info_(job) {
    for (const auto& [key, data] : session.cases) {
      if (key.device == job.device && key.arm == kRecorded) cases_.emplace_back(&key, &data);
    }
    for (const TraceInfo& trace : session.traces) {
      if (trace.device == job.device && trace.replicate == job.replicate && trace.record.kernels)
        kernels = &*trace.record.kernels;
    }
    length_ns = of_job("step_ns");
    idle_share = of_job("gpu_idle_share");
  }

  /// Of the whole recording.
  std::optional<double> of_job(const std::string& metric) const {
    const std::vector<double> found = samples("recorded/job", metric);
    return found.empty() ? std::nullopt : std::optional(found.front());
  }
  /// Of all launches, or of those that found their stream in this state.
  std::vector<double> of_launches(const std::string& metric, std::string_view state = "") const {
    return samples("recorded/launch", metric, state);
  }
  double share(double nanoseconds) const {
    return length_ns && *length_ns > 0 ? nanoseconds / *length_ns : 0;
  }
  double total_kernel_ns() const {
    double total = 0;
    for (const CountedKernels& kernel : *kernels) total += static_cast<double>(kernel.total_ns);
    return total;
  }

  Finding cause(std::string_view code, Severity severity) const {
    Finding cause;
    cause.source = FindingSource::cause;
    cause.device = info_.device;
    cause.replicate = info_.replicate;
    cause.code = std::string(code);
    cause.severity = severity;
    return cause;
  }

  const JobRecord& job;
  const std::vector<CountedKernels>* kernels = nullptr;
  std::optional<double> length_ns, idle_share;

 private:
  std::vector<double> samples(std::string_view benchmark,
                              const std::string& metric,
                              std::string_view state = "") const {
    std::vector<double> all;
    for (const auto& [key, data] : cases_) {
      if (key->name.benchmark != benchmark) continue;
      if (!state.empty() && key->name.at("stream") != state) continue;
      const auto of_metric = data->samples.find(metric);
      if (of_metric == data->samples.end()) continue;
      const auto own = of_metric->second.find(info_.replicate);
      if (own != of_metric->second.end())
        all.insert(all.end(), own->second.begin(), own->second.end());
    }
    return all;
  }

  const JobInfo& info_;
  std::vector<std::pair<const CaseKey*, const CaseData*>> cases_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return stats::quantile(values, 0.5).value_or(0);
}

void add_first_launches(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kSlower = 1.5, kMuchSlower = 10, kWorthIt = 0.005, kToAct = 0.01;
  constexpr double kExplains = 0.25;
  if (!process.job.first_launches) return;
  const FirstLaunches& firsts = *process.job.first_launches;
  const auto extra = static_cast<double>(firsts.extra_ns);
  const double of_slow =
      firsts.slow == 0 ? 0
                       : static_cast<double>(firsts.slow_firsts) / static_cast<double>(firsts.slow);
  // Also than those right after them: else it is the beginning that is slow.
  const double others = std::max(firsts.later_p50_ns, firsts.next_p50_ns);
  if (firsts.chance > kCertain || firsts.first_p50_ns < kSlower * others) return;
  if (process.share(extra) < kWorthIt && of_slow < kExplains &&
      firsts.first_p50_ns < kMuchSlower * firsts.later_p50_ns)
    return;
  Finding cause = process.cause("first-launches",
                                process.share(extra) >= kToAct ? Severity::act : Severity::note);
  cause.sentence = fmt::format(
      "The first launch of a kernel takes {}, a later one {} (medians): {} in all, for {} kernels.",
      time_text(firsts.first_p50_ns),
      time_text(firsts.later_p50_ns),
      time_text(extra),
      firsts.kernels);
  cause.evidence = one_line(fmt::format(
      "{} of the {} slowest launches (over the 99th percentile) are first ones; chance of such "
      "firsts: {}",
      firsts.slow_firsts,
      firsts.slow,
      chance_text(firsts.chance)));
  cause.remedy =
      "Launch each kernel once before time matters, or load all of them at the start "
      "(CUDA_MODULE_LOADING=EAGER), and leave first launches out of comparisons.";
  cause.share = process.share(extra);
  causes.push_back(std::move(cause));
}

struct StallKind {
  const char* kind;
  const char* code;
  const char* what;
  const char* advice;
};
constexpr StallKind kStallKinds[] = {
    {"wait",
     "wait-stalls",
     "waits for it",
     "Wait less often: keep results on the GPU until they are needed, read them some steps later, "
     "copy from pinned memory without blocking, and wait for an event rather than for the device."},
    {"allocate",
     "allocation-stalls",
     "taking memory and giving it back",
     "Take memory once and keep it: from a pool or a caching allocator that is not emptied, and "
     "with buffers that are used again."},
};

void add_stalls(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kWorthIt = 0.05;
  for (const StallKind& kind : kStallKinds) {
    double lost = 0, idle = 0;
    std::vector<std::string> calls;
    for (const StallRecord& stall : process.job.stalls) {
      if (stall.kind != kind.kind) continue;
      lost += static_cast<double>(stall.lost_ns);
      idle += static_cast<double>(stall.idle_ns);
      if (calls.size() < kMostNamed)
        calls.push_back(fmt::format("{}: work came late {} times, {} in all, at most {}",
                                    name_text(stall.call),
                                    stall.gaps,
                                    time_text(static_cast<double>(stall.lost_ns)),
                                    time_text(static_cast<double>(stall.longest_ns))));
    }
    if (process.share(lost) < kWorthIt) continue;
    Finding cause = process.cause(kind.code, Severity::act);
    cause.sentence = fmt::format(
        "The GPU runs out of work behind {}: if these calls took no time, it would be idle for up "
        "to {} less, {} of the recording.",
        kind.what,
        time_text(lost),
        percent_text(process.share(lost)));
    calls.push_back(fmt::format("the GPU is idle for {} while they go on", time_text(idle)));
    cause.evidence = one_line(fmt::format("{}", fmt::join(calls, "; ")));
    cause.remedy = kind.advice;
    cause.share = process.share(lost);
    causes.push_back(std::move(cause));
  }
}

void add_pauses(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kWorthIt = 0.05;
  const PausesRecord& pauses = process.job.pauses;
  const auto lost = static_cast<double>(pauses.total_ns);
  if (process.share(lost) < kWorthIt) return;
  Finding cause = process.cause("program-pauses", Severity::act);
  cause.sentence = fmt::format(
      "The program leaves the GPU without work for long: {} in pauses of 1 ms or more, {} of the "
      "recording.",
      time_text(lost),
      percent_text(process.share(lost)));
  cause.evidence = one_line(fmt::format("{} pauses in no call of CUDA; the longest takes {}",
                                        pauses.count,
                                        time_text(static_cast<double>(pauses.longest_ns))));
  cause.remedy =
      "See what the program does there: loading data, checkpoints, logging, collecting garbage; "
      "let "
      "other threads or processes do it ahead of time.";
  cause.share = process.share(lost);
  causes.push_back(std::move(cause));
}

/// What is said only of a GPU that idles, between launches that find nothing left to do.
void add_launch_bound(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kIdle = 0.2, kMost = 2.0 / 3, kHalf = 0.5;
  const std::vector<double> idle = process.of_launches("launch_ns", "idle");
  const std::vector<double> busy = process.of_launches("launch_ns", "busy");
  const std::vector<double> kernels = process.of_launches("kernel_ns");
  if (process.idle_share.value_or(0) <= kIdle || idle.empty() || kernels.empty()) return;
  const double on_idle =
      static_cast<double>(idle.size()) / static_cast<double>(idle.size() + busy.size());
  if (on_idle < kMost) return;
  const double call = median(process.of_launches("api_record_ns"));
  const double between = median(process.of_launches("since_last_ns"));
  const auto shorter_than = [&](double ns) {
    return static_cast<double>(std::ranges::count_if(kernels, [ns](double k) { return k < ns; })) /
           static_cast<double>(kernels.size());
  };
  const double idle_ns = *process.idle_share * process.length_ns.value_or(0);
  // Between launches: long pauses are another cause.
  const double host = process.of_job("idle_program_ns").value_or(0) +
                      process.of_job("idle_calling_ns").value_or(0) -
                      static_cast<double>(process.job.pauses.total_ns);
  const std::string common = fmt::format(
      "the GPU is idle {} of the time; {} of the launches find "
      "an idle stream; a kernel takes {} (median)",
      percent_text(*process.idle_share),
      percent_text(on_idle),
      time_text(median(kernels)));
  if (host >= kHalf * idle_ns && between > call) {
    Finding cause = process.cause("slow-host", Severity::act);
    cause.sentence = fmt::format(
        "The host is too slow: between two launches it spends {} outside of them (median), and the "
        "GPU waits for it {} of the time.",
        time_text(between),
        percent_text(process.share(host)));
    cause.evidence =
        one_line(fmt::format("a launch call takes {}; {} of the kernels are shorter than the "
                             "time from launch to launch; {}",
                             time_text(call),
                             percent_text(shorter_than(between + call)),
                             common));
    cause.remedy =
        "Let the host do less for each launch (a compiled or captured step, larger batches, work "
        "of "
        "the program on another thread), or let it run on a faster core.";
    cause.share = process.share(host);
    causes.push_back(std::move(cause));
  }
  const double short_share = shorter_than(call);
  if (short_share >= kHalf) {
    Finding cause = process.cause("short-kernels", Severity::act);
    cause.sentence = fmt::format(
        "{} of the kernels are shorter than a launch call, {}: launched one by one, they cannot "
        "keep the GPU busy.",
        percent_text(short_share),
        time_text(call));
    cause.evidence = one_line(common);
    cause.remedy = "Launch them together: in a graph, fused, or with more work for each.";
    causes.push_back(std::move(cause));
  }
}

/// Kernels that change are compared with all of them, since what takes no time need not be minded.
void add_kernel_changes(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kRatio = 1.05, kWorthIt = 0.005, kToAct = 0.02;
  struct Found {
    const CountedKernels* kernel;
    double lost_ns;
  };
  if (!process.kernels) return;
  const double total = process.total_kernel_ns();
  const auto tested =
      static_cast<double>(std::ranges::count_if(*process.kernels, [](const CountedKernels& kernel) {
        return kernel.change_chance.has_value();
      }));
  std::vector<Found> changed, modal;
  for (const CountedKernels& kernel : *process.kernels) {
    const double early = kernel.early_ns.value_or(0), late = kernel.late_ns.value_or(0);
    // Of many kernels, one may differ by chance alone: Bonferroni.
    const bool certain = kernel.change_chance && *kernel.change_chance * tested <= kCertain &&
                         std::max(early, late) >= kRatio * std::min(early, late);
    const double change = std::abs(late - early) * static_cast<double>(kernel.repeats.value_or(0));
    const double modes = kernel.modes_apart_ns.value_or(0) * kernel.slow_mode_share.value_or(0) *
                         static_cast<double>(kernel.count);
    if (certain && change >= kWorthIt * total) {
      changed.push_back({&kernel, change / 2});
    } else if (kernel.modes_apart_ns && modes >= kWorthIt * total) {
      modal.push_back({&kernel, modes});
    }
  }
  const auto sum = [](std::vector<Found>& found) {
    std::ranges::stable_sort(found, std::ranges::greater(), &Found::lost_ns);
    double all = 0;
    for (const Found& one : found) all += one.lost_ns;
    return all;
  };
  const auto named = [](const std::vector<Found>& found, auto&& text) {
    std::vector<std::string> texts;
    for (const Found& one : found) {
      if (texts.size() < kMostNamed) texts.push_back(text(*one.kernel));
    }
    if (found.size() > kMostNamed)
      texts.push_back(fmt::format("{} more: kernels.csv", found.size() - kMostNamed));
    return fmt::format("{}", fmt::join(texts, "; "));
  };
  const auto severity = [&](double lost) {
    return lost >= kToAct * total ? Severity::act : Severity::note;
  };
  if (!changed.empty()) {
    // What became faster is worth knowing, and nothing is lost by it.
    double slower = 0;
    for (const Found& one : changed)
      slower += *one.kernel->late_ns > *one.kernel->early_ns ? one.lost_ns : 0;
    sum(changed);
    const CountedKernels& most = *changed.front().kernel;
    Finding cause = process.cause("kernel-changed", severity(slower));
    cause.sentence = fmt::format(
        "{} of {} kernels that do the same work again and again changed on the way; {} takes {} in "
        "the later half of the repetitions, and took {} in the earlier.",
        changed.size(),
        tested,
        name_text(most.name),
        time_text(*most.late_ns),
        time_text(*most.early_ns));
    cause.evidence = one_line(named(changed, [](const CountedKernels& kernel) {
      return fmt::format("{}: {} then {} a repetition, of {}, chance {}",
                         name_text(kernel.name),
                         time_text(*kernel.early_ns),
                         time_text(*kernel.late_ns),
                         *kernel.repeats,
                         chance_text(*kernel.change_chance));
    }));
    cause.remedy =
        "See whether its input changed; if not, watch the GPU's clocks, temperature and neighbours "
        "while the job runs.";
    if (slower > 0) {
      cause.share = process.share(slower);
    }
    causes.push_back(std::move(cause));
  }
  if (!modal.empty()) {
    const double lost = sum(modal);
    const CountedKernels& most = *modal.front().kernel;
    Finding cause = process.cause("kernel-modes", severity(lost));
    cause.sentence = fmt::format(
        "At the same place of the same work, {} takes {} or {} longer: one of {} kernels whose "
        "times crowd around two values.",
        name_text(most.name),
        time_text(*most.fast_mode_ns),
        time_text(*most.modes_apart_ns),
        modal.size());
    cause.evidence = one_line(named(modal, [](const CountedKernels& kernel) {
      return fmt::format("{}: {} of its runs take {} longer than {}",
                         name_text(kernel.name),
                         percent_text(*kernel.slow_mode_share),
                         time_text(*kernel.modes_apart_ns),
                         time_text(*kernel.fast_mode_ns));
    }));
    cause.remedy =
        "See what runs beside it (other streams, copies, collectives) and whether its input "
        "differs; if neither, watch the GPU's clocks.";
    cause.share = process.share(lost);
    causes.push_back(std::move(cause));
  }
}

void add_stragglers(const SessionData& session, std::vector<Finding>& causes) {
  const RankedJob job = ranked_job(session);
  if (job.ranks.empty()) return;
  const StragglerCheck check = check_stragglers(job.times);
  if (check.straggler == Straggler::none) return;
  Finding cause;
  cause.source = FindingSource::cause;
  cause.severity = Severity::act;
  cause.share = check.lost_share;
  const std::string& slowest = job.names[check.slowest];
  if (check.straggler == Straggler::persistent) {
    cause.code = "persistent-straggler";
    cause.device = job.ranks[check.slowest]->device;
    cause.replicate = job.ranks[check.slowest]->replicate;
    cause.sentence = fmt::format(
        "The ranks wait for {}: it is the slowest of {} in {} of {} steps, and takes {} longer "
        "than "
        "the others (median).",
        slowest,
        check.ranks,
        check.slowest_steps,
        check.steps,
        percent_text(check.slower));
    cause.remedy =
        "Compare that rank's GPU and host with the others': clocks, power, temperature, PCIe, "
        "other "
        "processes; and see whether it has more work.";
  } else {
    cause.code = "rotating-straggler";
    cause.sentence = fmt::format(
        "The {} ranks wait for a different one from step to step: the slowest takes {} longer than "
        "the one in the middle (means).",
        check.ranks,
        percent_text(check.lost_share));
    cause.remedy =
        "Look for what differs from step to step: the length of inputs, loading of data, other "
        "programs on the hosts.";
  }
  cause.evidence = one_line(fmt::format(
      "a step loses {} (mean of the slowest less mean of the median); the median step loses {}; {} "
      "is "
      "the slowest in {} of {} steps, chance {}{}",
      time_text(check.lost_ns),
      percent_text(check.usual_share),
      slowest,
      check.slowest_steps,
      check.steps,
      chance_text(check.chance),
      job.without_collectives ? "; without the time in which a GPU only talks to others" : ""));
  causes.push_back(std::move(cause));
}

}  // namespace

std::vector<Finding> causes(const SessionData& session) {
  std::vector<Finding> all;
  for (const JobInfo& job : session.jobs) {
    const RecordedProcess process(session, job);
    std::vector<Finding> own;
    add_stalls(process, own);
    add_pauses(process, own);
    add_launch_bound(process, own);
    add_first_launches(process, own);
    add_kernel_changes(process, own);
    sort_findings(own);
    std::ranges::move(own, std::back_inserter(all));
  }
  add_stragglers(session, all);
  return all;
}

}  // namespace launchgap
