// Causes of a GPU that idles. They are told of no recording whose kernels are lost.
#include <algorithm>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/stats/stats.h"
#include "harness/summary/causes.h"

namespace launchgap {
namespace {

using cause_text::kMostNamed;

constexpr double kWorthIt = 0.05;

struct StallKind {
  const char* kind;
  const char* code;
  const char* sentence;
  const char* remedy;
};
constexpr StallKind kStallKinds[] = {
    {"wait",
     "wait-stalls",
     "Synchronization starves the GPU: up to {} of idle time is avoidable, {} of the recording.",
     "Wait less often: keep results on the GPU until they are needed, read them some steps later, "
     "copy from pinned memory without blocking, and wait for an event rather than for the device."},
    {"allocate",
     "allocation-stalls",
     "Allocating and freeing memory starves the GPU: up to {} of idle time is avoidable, {} of the "
     "recording.",
     "Take memory once and keep it: from a pool or a caching allocator that is not emptied, and "
     "with buffers that are used again."},
};

/// One call of tens of milliseconds that takes or frees memory is seldom about memory.
bool makes_a_context(const StallRecord& stall) {
  constexpr std::int64_t kLeast = 30'000'000;
  return stall.gaps == 1 && stall.lost_ns >= kLeast;
}

void add_context_creation(const RecordedProcess& process,
                          const StallRecord& stall,
                          std::vector<Finding>& causes) {
  const auto lost = static_cast<double>(stall.lost_ns);
  if (process.share(lost) < kWorthIt) return;
  Finding& cause = causes.emplace_back(process.finding("context-creation", Severity::note, lost));
  cause.sentence = fmt::format(
      "One call of {} took {} while the GPU was idle, {} of the recording: it probably made the "
      "CUDA context.",
      cause_text::name(stall.call),
      cause_text::time(lost),
      percent_text(process.share(lost)));
  cause.evidence = {{"idle in this call", static_cast<double>(stall.idle_ns), "ns"}};
  cause.remedy = "Make the context before time matters (`cudaFree(0)`), or leave this call out.";
}

void add_stalls(const RecordedProcess& process, std::vector<Finding>& causes) {
  for (const StallKind& kind : kStallKinds) {
    double lost = 0, idle = 0;
    std::vector<Evidence> calls;
    for (const StallRecord& stall : process.job.stalls) {
      if (stall.kind != kind.kind) continue;
      if (stall.kind == "allocate" && makes_a_context(stall)) {
        add_context_creation(process, stall, causes);
        continue;
      }
      lost += static_cast<double>(stall.lost_ns);
      idle += static_cast<double>(stall.idle_ns);
      if (calls.size() < kMostNamed)
        calls.push_back(fmt::format("{}: the next kernel arrived late {}, {} in all, at most {}",
                                    cause_text::name(stall.call),
                                    counted(stall.gaps, "time"),
                                    cause_text::time(static_cast<double>(stall.lost_ns)),
                                    cause_text::time(static_cast<double>(stall.longest_ns))));
    }
    if (process.share(lost) < kWorthIt) continue;
    Finding& cause = causes.emplace_back(process.finding(kind.code, Severity::act, lost));
    cause.sentence = fmt::format(
        fmt::runtime(kind.sentence), cause_text::time(lost), percent_text(process.share(lost)));
    cause.evidence = std::move(calls);
    cause.evidence.push_back({"the GPU idles during these calls", idle, "ns"});
    cause.remedy = kind.remedy;
  }
}

void add_pauses(const RecordedProcess& process, std::vector<Finding>& causes) {
  const PausesRecord& pauses = process.job.pauses;
  const auto lost = static_cast<double>(pauses.total_ns);
  if (process.share(lost) < kWorthIt) return;
  Finding& cause = causes.emplace_back(process.finding("program-pauses", Severity::act, lost));
  cause.sentence =
      fmt::format("The program leaves the GPU without work for {}, {} of the recording, in {}.",
                  cause_text::time(lost),
                  percent_text(process.share(lost)),
                  counted(pauses.count, "pause"));
  cause.evidence = {
      {"pauses of 1 ms or more outside of CUDA", static_cast<double>(pauses.count), "1"},
      {"the longest", static_cast<double>(pauses.longest_ns), "ns"}};
  cause.remedy =
      "See what the program does there: loading data, checkpoints, logging, collecting garbage. "
      "Let other threads or processes do it ahead of time.";
}

/// Of another kind than waits and allocations.
void add_long_calls(const RecordedProcess& process, std::vector<Finding>& causes) {
  const PausesRecord& calls = process.job.long_calls;
  const auto lost = static_cast<double>(calls.total_ns);
  if (process.share(lost) < kWorthIt) return;
  Finding& cause = causes.emplace_back(process.finding("long-call", Severity::act, lost));
  const std::string length = cause_text::time(process.length_ns.value_or(0));
  cause.sentence =
      calls.count == 1
          ? fmt::format("One call of {} took {} of {}, and the GPU was idle meanwhile.",
                        cause_text::name(calls.call),
                        cause_text::time(lost),
                        length)
          : fmt::format(
                "{} long calls took {} of {}, and the GPU was idle meanwhile; the longest "
                "is {}, {}.",
                cause_text::grouped(calls.count),
                cause_text::time(lost),
                length,
                cause_text::name(calls.call),
                cause_text::time(static_cast<double>(calls.longest_ns)));
  cause.evidence = {{"calls of 1 ms or more", static_cast<double>(calls.count), "1"},
                    {"the longest", static_cast<double>(calls.longest_ns), "ns"}};
  cause.remedy =
      "See what the call does. What it sets up can be set up before time matters; what it waits "
      "for can be waited for by another thread.";
}

/// Nothing tells what queued work waits for, so this is a question.
void add_queued(const RecordedProcess& process, std::vector<Finding>& causes) {
  constexpr double kLeastShare = 0.2, kHalf = 0.5;
  const double idle = process.of_job("idle_queued_ns").value_or(0);
  if (process.share(idle) < kLeastShare) return;
  const auto before_graphs = static_cast<double>(process.job.queued_graph_ns);
  const bool of_graphs = before_graphs >= kHalf * idle;
  Finding& cause = causes.emplace_back(process.finding("queued-work-waits", Severity::open, idle));
  cause.sentence = fmt::format(
      "The GPU idles {} of the time although work is queued{}",
      percent_text(process.share(idle)),
      of_graphs ? fmt::format(": {} before work of a graph, of which kernels may lack a record.",
                              percent_text(process.share(before_graphs)))
                : ": it waits for another stream, a copy or another GPU.");
  cause.evidence = {{"idle with work queued", idle, "ns"},
                    {"GPU idle", process.idle_share.value_or(0), "share"}};
  if (before_graphs > 0)
    cause.evidence.push_back({"idle before queued work of a graph", before_graphs, "ns"});
  cause.unknown = of_graphs
                      ? "what the graph waits for, or whether all of its kernels have a record"
                      : "what the queued work waits for";
  cause.remedy =
      "Look at what ends right before such a gap does: events that one stream waits for, copies, "
      "collectives (`launchgap export --format chrome-trace`).";
  if (of_graphs)
    cause.remedy += " See all kernels of a graph: `nsys profile --cuda-graph-trace=node`.";
}

/// What is said of a GPU that idles from launch to launch.
class BetweenLaunches {
 public:
  explicit BetweenLaunches(const RecordedProcess& process)
      : process_(process),
        delays_(process.of_launches("launch_ns", "idle")),
        kernels_(process.of_launches("kernel_ns")),
        calls_(of_all(process, "api_record_ns")),
        call_(stats::median(calls_).value_or(0)),
        between_(stats::median(of_all(process, "since_last_ns")).value_or(0)) {}

  void add(std::vector<Finding>& causes) const {
    constexpr double kIdle = 0.2;
    constexpr std::size_t kLeastLaunches = 100;
    if (is_late()) return add_late(causes);
    if (process_.idle_share.value_or(0) <= kIdle || calls_.size() < kLeastLaunches) return;
    add_slow_host(causes);
    if (add_blocking_launches(causes)) return;
    if (!add_short_kernels(causes)) add_launch_gaps(causes);
  }

 private:
  /// A graph is launched by one call too.
  static std::vector<double> of_all(const RecordedProcess& process, const std::string& metric) {
    std::vector<double> all = process.of_launches(metric);
    const std::vector<double> graphs = process.of_graphs(metric);
    all.insert(all.end(), graphs.begin(), graphs.end());
    return all;
  }
  bool is_late() const {
    constexpr double kLate = 1e6;
    constexpr std::size_t kLeast = 20;
    return delays_.size() >= kLeast && *stats::median(delays_) >= kLate;
  }
  double shorter_than(double ns) const {
    return static_cast<double>(
               std::ranges::count_if(kernels_, [ns](double kernel) { return kernel < ns; })) /
           static_cast<double>(kernels_.size());
  }
  /// Between a launch call and the start of its work; single long ones are none of it.
  double starting() const {
    return std::max(0.0,
                    process_.of_job("idle_launch_ns").value_or(0) -
                        static_cast<double>(process_.job.late_starts.total_ns));
  }
  std::vector<Evidence> common() const {
    std::vector<Evidence> found = {{"GPU idle", *process_.idle_share, "share"},
                                   {"launch call, p50", call_, "ns"}};
    if (kernels_.empty()) return found;
    found.push_back({"kernel, p50", *stats::median(kernels_), "ns"});
    found.push_back({"kernels shorter than a launch call", shorter_than(call_), "share"});
    return found;
  }

  void add_late(std::vector<Finding>& causes) const {
    const double idle = process_.of_job("idle_launch_ns").value_or(0);
    if (process_.share(idle) < kWorthIt) return;
    Finding& cause = causes.emplace_back(process_.finding("late-kernels", Severity::act, idle));
    // Whether the kernel comes late after the call, or the call itself takes that long.
    const bool in_call = 2 * call_ >= *stats::median(delays_);
    cause.sentence =
        in_call ? fmt::format(
                      "A launch call takes {} (p50) although its stream is idle; 2 to 30 µs are "
                      "usual.",
                      cause_text::time(call_))
                : fmt::format(
                      "A kernel begins {} after its launch call although its stream is idle (p50); "
                      "5 to 30 µs are usual.",
                      cause_text::time(*stats::median(delays_)));
    cause.evidence = {{"launches on an idle stream", static_cast<double>(delays_.size()), "1"},
                      {"launch call, p50", call_, "ns"},
                      {"GPU idle from a launch call to its kernel", process_.share(idle), "share"}};
    cause.remedy = in_call
                       ? "See what the driver does in the call: a debugger, a sanitizer or another "
                         "tool that stops at launches, a virtual machine, a lock that other "
                         "threads or processes hold."
                       : "See what holds the GPU: another process on it, time slicing, a virtual "
                         "machine, a GPU that sleeps between launches.";
    cause.unknown =
        in_call ? "what the driver does in the call" : "what the GPU did meanwhile for others";
  }

  void add_slow_host(std::vector<Finding>& causes) const {
    constexpr double kHalf = 0.5, kLeastShare = 0.1;
    const JobRecord& job = process_.job;
    // Long pauses and long calls are causes of their own.
    const double host = process_.of_job("idle_program_ns").value_or(0) +
                        process_.of_job("idle_calling_ns").value_or(0) -
                        static_cast<double>(job.pauses.total_ns + job.long_calls.total_ns +
                                            job.long_launches.total_ns);
    const double idle = *process_.idle_share * process_.length_ns.value_or(0);
    if (host < kHalf * idle || process_.share(host) < kLeastShare || between_ <= call_) return;
    const bool python = job.python_calls >= calls_.size();
    Finding& cause = causes.emplace_back(
        process_.finding("slow-host", python ? Severity::note : Severity::act, host));
    cause.sentence = fmt::format(
        "The host is too slow: it spends {} from one launch call to the next (p50), and the GPU "
        "waits for it {} of the time{}.",
        cause_text::time(between_),
        percent_text(process_.share(host)),
        python ? "; but the recorder traced Python too" : "");
    cause.evidence = common();
    if (python) {
      cause.evidence.push_back(
          {"Python calls that were traced", static_cast<double>(job.python_calls), "1"});
      cause.unknown = "how fast the host is when Python is not traced";
      cause.remedy = "Record without Python's calls (`with_stack=False`), and look again.";
    } else {
      cause.remedy =
          "Let the host do less for each launch (a compiled or captured step, larger batches, work "
          "of the program on another thread), or let it run on a faster core.";
    }
  }

  /// Calls that last until their kernel has ended: nearly all do, and where a kernel takes longer
  /// its call takes as much longer. A short kernel may end within its call by itself.
  bool block() const {
    constexpr double kNearlyAll = 0.95, kAlike = 0.2;
    constexpr std::size_t kFewest = 100;
    const std::vector<double> calls = process_.of_launches("api_record_ns", "idle");
    const std::vector<double> kernels = process_.of_launches("kernel_ns", "idle");
    if (delays_.size() < kFewest || calls.size() != delays_.size() ||
        kernels.size() != delays_.size())
      return false;
    std::vector<double> rest;  // of the call, when the kernel has ended
    for (std::size_t i = 0; i < calls.size(); ++i)
      rest.push_back(calls[i] - delays_[i] - kernels[i]);
    const auto ended = std::ranges::count_if(rest, [](double ns) { return ns >= 0; });
    if (static_cast<double>(ended) < kNearlyAll * static_cast<double>(rest.size())) return false;
    std::vector<double> sorted = kernels;
    std::ranges::sort(sorted);
    const double spread = *stats::quantile(sorted, 0.9) - *stats::quantile(sorted, 0.1);
    std::ranges::sort(rest);
    const double rest_spread = *stats::quantile(rest, 0.9) - *stats::quantile(rest, 0.1);
    return spread > 0 && rest_spread <= kAlike * spread;
  }

  bool add_blocking_launches(std::vector<Finding>& causes) const {
    if (!block()) return false;
    const double lost = starting() + process_.of_job("idle_program_ns").value_or(0);
    if (process_.share(lost) < kWorthIt) return false;
    Finding& cause =
        causes.emplace_back(process_.finding("blocking-launches", Severity::act, lost));
    cause.sentence = fmt::format(
        "Each launch call returns when its kernel has ended: launches block, so nothing is ever "
        "queued, and the GPU is idle {} of the time.",
        percent_text(*process_.idle_share));
    cause.evidence = common();
    cause.remedy =
        "Let launches return at once: unset CUDA_LAUNCH_BLOCKING, and run without a debugger, a "
        "sanitizer or a profiler that serializes kernels.";
    cause.unknown = "what makes them block";
    return true;
  }

  bool add_short_kernels(std::vector<Finding>& causes) const {
    constexpr double kHalf = 0.5;
    const double lost = starting();
    constexpr std::size_t kLeastKernels = 100;
    if (kernels_.size() < kLeastKernels || shorter_than(call_) < kHalf ||
        process_.share(lost) < kWorthIt)
      return false;
    Finding& cause = causes.emplace_back(process_.finding("short-kernels", Severity::act, lost));
    cause.sentence = fmt::format(
        "{} of the kernels are shorter than a launch call ({}): one by one they cannot keep the "
        "GPU busy, and launching leaves it idle {} of the time.",
        percent_text(shorter_than(call_)),
        cause_text::time(call_),
        percent_text(process_.share(lost)));
    cause.evidence = common();
    cause.remedy = "Launch them together: in a graph, fused, or with more work for each.";
    return true;
  }

  void add_launch_gaps(std::vector<Finding>& causes) const {
    constexpr double kLeastShare = 0.2;
    const double lost = starting();
    if (process_.share(lost) < kLeastShare) return;
    Finding& cause = causes.emplace_back(process_.finding("launch-gaps", Severity::act, lost));
    cause.sentence = fmt::format(
        "The GPU waits {} of the time between a launch call and the start of its work: nothing "
        "else is queued.",
        percent_text(process_.share(lost)));
    cause.evidence = common();
    cause.remedy =
        "Launch ahead: do not wait between launches, or put the launches into a graph, or give "
        "each more work.";
  }

  const RecordedProcess& process_;
  std::vector<double> delays_, kernels_, calls_;
  double call_, between_;
};

}  // namespace

void add_idle_causes(const RecordedProcess& process, std::vector<Finding>& causes) {
  if (!process.knows_idleness()) return;
  add_stalls(process, causes);
  add_pauses(process, causes);
  add_long_calls(process, causes);
  add_queued(process, causes);
  BetweenLaunches(process).add(causes);
}

}  // namespace launchgap
