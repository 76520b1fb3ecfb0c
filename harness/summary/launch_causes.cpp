// Causes of slow launch calls. They rest on the host's clock alone.
#include <algorithm>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/causes.h"

namespace launchgap {
namespace {

using cause_text::grouped;

/// "2 of 9,628 launches took 836 ms, 88 % of all launch time".
std::string amount(const LaunchTail& tail, const TailPart& part) {
  if (tail.launches == 1)
    return fmt::format("The only launch took {}",
                       cause_text::time(static_cast<double>(part.time_ns)));
  return fmt::format("{} of {} launches took {}, {} of all launch time",
                     grouped(part.launches),
                     grouped(tail.launches),
                     cause_text::time(static_cast<double>(part.time_ns)),
                     percent_text(tail.share(part)));
}

/// ", both among the first 4", where that says something.
std::string among_the_first(const LaunchTail& tail, const TailPart& part) {
  constexpr std::uint64_t kMostFirst = 100, kFewOf = 10;
  if (part.last > kMostFirst || part.last * kFewOf > tail.launches) return "";
  if (part.last == 1) return ", the very first";
  const char* const all = part.launches == 1 ? "" : part.launches == 2 ? "both " : "all ";
  return fmt::format(", {}among the first {}", all, part.last);
}

std::vector<Evidence> evidence_of(const LaunchTail& tail, const TailPart& part) {
  std::vector<Evidence> found = {{"launches", static_cast<double>(part.launches), "1"},
                                 {"time in their calls", static_cast<double>(part.time_ns), "ns"},
                                 {"the longest", static_cast<double>(part.longest_ns), "ns"},
                                 {"any launch call, p50", tail.p50_ns, "ns"}};
  if (part.what_ns > 0)
    found.emplace_back(fmt::format("most of it: {}, {}",
                                   cause_text::name(part.what),
                                   cause_text::time(static_cast<double>(part.what_ns))));
  return found;
}

/// Which kernel's launches take long, where nothing says why they do.
std::string mostly_of(const TailPart& part) {
  if (part.launches < 2 || 2 * part.what_ns < part.time_ns || part.what.empty()) return "";
  return fmt::format(
      "; launches of {} are {} of it",
      cause_text::name(part.what),
      percent_text(static_cast<double>(part.what_ns) / static_cast<double>(part.time_ns)));
}

/// Each kernel's first launch beside its later ones: that many of them are slower than chance lets
/// them be.
bool firsts_are_slower(const RecordedProcess& process) {
  constexpr double kSlower = 1.5, kMuchSlower = 10, kWorthIt = 0.005, kExplains = 0.25;
  if (!process.job.first_launches) return false;
  const FirstLaunches& firsts = *process.job.first_launches;
  const double of_slow =
      firsts.slow == 0 ? 0
                       : static_cast<double>(firsts.slow_firsts) / static_cast<double>(firsts.slow);
  // Also than those right after them: else it is the beginning that is slow.
  const double others = std::max(firsts.later_p50_ns, firsts.next_p50_ns);
  if (firsts.chance > cause_text::kCertain || firsts.first_p50_ns < kSlower * others) return false;
  return process.share(static_cast<double>(firsts.extra_ns)) >= kWorthIt || of_slow >= kExplains ||
         firsts.first_p50_ns >= kMuchSlower * firsts.later_p50_ns;
}

void add_first_launches(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kOfLaunchTime = 0.1, kOfRecording = 0.001, kWorthIt = 0.005, kToAct = 0.01;
  const TailPart* const part =
      process.job.tail ? process.job.tail->part(TailCause::first_launch) : nullptr;
  const double of_launches = part ? process.job.tail->share(*part) : 0;
  const double of_recording = part ? process.share_of_calls(*part) : 0;
  const bool is_large =
      of_recording >= kWorthIt || (of_launches >= kOfLaunchTime && of_recording >= kOfRecording);
  if (!is_large && !firsts_are_slower(process)) return;
  // A median of few first launches may be none of them: those that took long are named by their
  // number, where they are what first launches cost.
  const bool by_number =
      is_large ||
      (part && 2 * part->time_ns >= process.job.first_launches->extra_ns && part->launches > 0);
  Finding cause = process.finding("first-launches", Severity::note);
  if (process.job.first_launches) {
    const FirstLaunches& firsts = *process.job.first_launches;
    cause.evidence = {
        {"kernels launched again", static_cast<double>(firsts.kernels), "1"},
        {"their first launch, p50", firsts.first_p50_ns, "ns"},
        {"their later launches, p50", firsts.later_p50_ns, "ns"},
        fmt::format("chance of such first launches: {}", cause_text::chance(firsts.chance))};
  }
  if (by_number) {
    cause.sentence = fmt::format("{}{}: {}, which probably loaded code.",
                                 amount(*process.job.tail, *part),
                                 among_the_first(*process.job.tail, *part),
                                 part->launches == 1 ? "a first launch" : "first launches");
    cause.share = of_recording;
    const std::vector<Evidence> own = evidence_of(*process.job.tail, *part);
    cause.evidence.insert(cause.evidence.begin(), own.begin(), own.end());
  } else {
    const FirstLaunches& firsts = *process.job.first_launches;
    const auto extra = static_cast<double>(firsts.extra_ns);
    cause.sentence = fmt::format(
        "The first launch of a kernel takes {}, a later one {} (p50): {} more in all, for {}.",
        cause_text::time(firsts.first_p50_ns),
        cause_text::time(firsts.later_p50_ns),
        cause_text::time(extra),
        counted(firsts.kernels, "kernel"));
    cause.share = process.share(extra);
  }
  if (*cause.share >= kToAct) cause.severity = Severity::act;
  cause.remedy =
      "Warm up: launch each kernel once before time matters, or load all code at the start "
      "(CUDA_MODULE_LOADING=EAGER). Or leave first launches out of comparisons.";
  causes.push_back(std::move(cause));
}

struct TailText {
  TailCause cause;
  const char* code;
  Severity most;  // where it costs 1 % of the recording or more
  const char* why;
  const char* remedy;
};
constexpr TailText kTailTexts[] = {
    {TailCause::queue_full,
     "queue-full",
     Severity::note,
     "waiting for room in the GPU's queue",
     "Nothing is wrong with launching: the GPU has all the work that it can queue. The host is "
     "free "
     "to do something else instead of launching further ahead."},
    {TailCause::overlapping_call,
     "overlapping-calls",
     Severity::act,
     "another thread was in {} meanwhile",
     "Keep calls that allocate, copy or wait away from the time in which another thread launches."},
    {TailCause::recorder,
     "recorder-overhead",
     Severity::note,
     "the recorder took this time",
     "Record less: a shorter time, or fewer kinds of events. Without the recorder they take less."},
    {TailCause::host_pause,
     "host-pauses",
     Severity::act,
     "the launching thread was off its CPU",
     "Give the thread that launches a CPU of its own, and look for what else runs on its host."},
    {TailCause::slow_kernel,
     "slow-launching-kernel",
     Severity::note,
     "launches of {} always take long",
     "See what this launch needs: many arguments, a cluster or cooperative launch, local memory "
     "that grows."},
    {TailCause::unexplained,
     "unexplained-launches",
     Severity::open,
     "nothing in the recording says why",
     "Record the host's scheduling too (`nsys profile --cpuctxsw=process-tree`), and all threads."},
};

void add_tail(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kOfLaunchTime = 0.1, kOfRecording = 0.005, kToAct = 0.01;
  if (!process.job.tail) return;
  for (const TailText& text : kTailTexts) {
    const TailPart* const part = process.job.tail->part(text.cause);
    if (!part || process.job.tail->share(*part) < kOfLaunchTime) continue;
    const double share = process.share_of_calls(*part);
    if (share < kOfRecording) continue;
    Finding& cause = causes.emplace_back(process.finding(text.code, text.most));
    if (text.most == Severity::act && share < kToAct) cause.severity = Severity::note;
    const std::string what = part->what.empty() ? "another call" : cause_text::name(part->what);
    cause.sentence = fmt::format("{}{}: {}{}.",
                                 amount(*process.job.tail, *part),
                                 among_the_first(*process.job.tail, *part),
                                 fmt::format(fmt::runtime(text.why), what),
                                 text.cause == TailCause::unexplained ? mostly_of(*part) : "");
    cause.evidence = evidence_of(*process.job.tail, *part);
    cause.remedy = text.remedy;
    cause.share = share;
  }
}

}  // namespace

void add_launch_causes(const RecordedProcess& process, std::vector<Finding>& causes) {
  add_first_launches(process, causes);
  add_tail(process, causes);
}

}  // namespace launchgap
