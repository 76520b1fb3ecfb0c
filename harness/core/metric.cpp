#include "harness/core/metric.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

constexpr auto kLower = Direction::lower_is_better;
constexpr auto kHigher = Direction::higher_is_better;

/// What is not of one benchmark alone.
std::list<Metric> shared_metrics() {
  return {
      host_time("api_ns",
                "Time inside the launch call: from its start until it returns, on an idle stream.",
                "the kernel, the wait",
                "the time in the call"),
      host_time("roundtrip_ns",
                "From the start of the launch call until the wait for what it launched returns, on "
                "an idle stream: call, start, kernel, completion and wake-up.",
                "",
                "the round trip"),
      host_time(
          "per_launch_ns",
          "A burst of launches without waiting and one wait at the end, divided by their number.",
          "any clock reading between the launches",
          "the time per launch"),
      host_time("call_ns", "Time inside one allocation call.", "the first use of the memory"),
      host_time("free_ns",
                "Time inside the call that gives the allocation back.",
                "work that an asynchronous release leaves for later"),
      host_time("first_touch_ns",
                "Writing the whole new allocation once and waiting for it: where memory is only "
                "promised by the call, this is where it is paid for. A GPU's is there already, so "
                "on a GPU it is the launch of a memset, its work and its wait.",
                "the allocation call"),
      traced_time("api_record_ns",
                  "The call's record, from begin to end: a launch, the mean of a burst's launches, "
                  "or an allocation.",
                  "what of the call lies outside of the record"),
      traced_time("launch_ns",
                  "From the start of the launch call's record until the kernel begins."),
      traced_time("queue_ns",
                  "From the end of the launch call's record until the kernel begins; missing where "
                  "the kernel began before the call had returned. The share of launches that have "
                  "one is its n by that of launch_ns.",
                  "the call"),
      traced_time("kernel_ns",
                  "From a kernel's begin to its end; of a burst the mean; of library work the sum "
                  "of the operation's kernels."),
      traced_time("overhead_ns",
                  "Time that overhead records cover: loading of code, a full command buffer, the "
                  "tracer's own buffers. Those with the launch's number count from the call until "
                  "the kernel begins, the others during the call; where they overlap, once."),
      traced_time("inter_kernel_gap_ns",
                  "Time between two kernels of a burst in which the device runs neither; mean of "
                  "the burst."),
      traced_time("device_idle_ns",
                  "Time between the first kernel's begin and the last one's end that no kernel "
                  "covers, per operation."),
      {"kernels", "1", kLower, "trace", "Kernels per operation.", "the gate"},
      traced_time("free_record_ns",
                  "The record, from begin to end, of the call that gives an allocation back."),
      traced_time(
          "step_ns",
          "From the start of a step to its end; of a job from the GPU's first work to its last."),
      {"launches", "1", kLower, "trace", "Launches that were called in a step.", ""},
      traced_time("launch_calls_ns", "What the calls of these launches took."),
      traced_time("collectives_ns",
                  "The time in which of the process's work on the GPU only kernels of NCCL ran: "
                  "the GPU talks to others, or waits for them.",
                  "what computes beside"),
      {"gpu_idle_share",
       "1",
       kLower,
       "trace",
       "Of a step or a job, the share of time in which nothing of the process ran on the GPU, "
       "between its first work and its last.",
       "what other processes ran there"},
      traced_time(
          "idle_queued_ns",
          "Of the GPU's idle time, that in which the next work was queued already, and waited for "
          "something else: another stream, a copy, another GPU; and the pauses between kernels."),
      traced_time("idle_launch_ns",
                  "Of the GPU's idle time, that from the call that brings the next work to the "
                  "start of it."),
      traced_time("idle_waiting_ns",
                  "Of the GPU's idle time, that in which the thread that brings the next work "
                  "waited for the GPU."),
      traced_time("idle_allocating_ns",
                  "Of the GPU's idle time, that in which this thread took memory or gave it back."),
      traced_time("idle_calling_ns",
                  "Of the GPU's idle time, that in which this thread was in other calls of CUDA."),
      traced_time("idle_program_ns",
                  "Of the GPU's idle time, that in which this thread was in no call of CUDA: the "
                  "program itself."),
      traced_time(
          "idle_unknown_ns",
          "Of the GPU's idle time, that before work of which no record tells who called for it."),
      traced_time("flag_excess_ns",
                  "flag_ns less launch_ns of the same launch: the way back of the flag, and what "
                  "the host does around the call. Below zero, one of them is wrong."),
      traced_time("quiet_launch_ns",
                  "launch_ns of launch/interference while nothing else goes on.",
                  "",
                  "the time until the kernel begins, while nothing else goes on"),
      traced_time(
          "disturbed_launch_ns",
          "launch_ns of launch/interference while the interference goes on, or right after it.",
          "",
          "the time until the kernel begins, while the interference goes on"),
      traced_time("after_launch_ns",
                  "launch_ns of launch/interference once it is over.",
                  "",
                  "the time until the kernel begins, once it is over"),
      device_time("device_ns",
                  "Time on the device for one operation: two events around at least 1 ms of the "
                  "same work, or 256 operations of it, divided by their number. All of it is "
                  "enqueued behind a gate, so that launching is not measured.",
                  "the calls that enqueue the work, the host's wait"),
      {"tflops",
       "TFLOP/s",
       kHigher,
       "derived",
       "Floating-point operations of the direct algorithm (2 per multiply-add) divided by "
       "device_ns. A burst of some ten milliseconds after 0.1 s of warm-up: a large GPU meets "
       "its power limit only later.",
       "what the algorithm really executes: Winograd and FFT execute less, so they can exceed "
       "the device's peak",
       "",
       "device_ns"},
      device_time("best_ns",
                  "An operation by the best of the library's candidates, which was chosen by the "
                  "medians of other samples.",
                  "launching",
                  "the best candidate's time"),
      derived_ratio("regret",
                    "The time by the library's own choice (default_ns, selected_ns) divided by "
                    "best_ns, sample by sample.",
                    "",
                    "the regret"),
      host_time("per_kernel_ns",
                "Kernels that follow one another and one wait at the end, divided by their number: "
                "launch and work.",
                "",
                "the time per kernel"),
      {"starved_share",
       "1",
       kLower,
       "trace",
       "Share of the chain's kernels, from 0 to 1, whose launch call began only when the kernel "
       "before had ended: the device had nothing queued. Above one half, the chain is bound by "
       "launches.",
       ""},
      host_time("first_roundtrip_ns",
                "The first launch of its kind, from the start of the call until the wait for it "
                "returns: of a graph after its upload, or of a kernel in a fresh process.",
                "",
                "the first round trip"),
  };
}

std::list<Metric>& metrics() {
  static std::list<Metric> all = shared_metrics();
  return all;
}

}  // namespace

Metric MetricMaker::operator()(std::string_view key,
                               std::string meaning,
                               std::string excludes,
                               std::string_view in_a_sentence) const {
  return {key, unit, kLower, source, std::move(meaning), std::move(excludes), in_a_sentence};
}

const std::list<Metric>& all_metrics() {
  return metrics();
}

void add_metric(Metric metric) {
  if (find_metric(metric.key))
    throw std::logic_error("two metrics are named " + std::string(metric.key));
  static const auto last_shared = std::prev(metrics().end());
  auto place = std::next(last_shared);
  while (place != metrics().end() && place->key < metric.key) ++place;
  metrics().insert(place, std::move(metric));
}

const Metric* find_metric(std::string_view key) {
  const auto found = std::ranges::find(metrics(), key, &Metric::key);
  return found == metrics().end() ? nullptr : &*found;
}

const Metric& metric(std::string_view key) {
  if (const Metric* const found = find_metric(key)) return *found;
  throw Error("there is no metric '" + std::string(key) + "'");
}

std::string_view unit_of(std::string_view metric) {
  const Metric* const known = find_metric(metric);
  return known ? known->unit : std::string_view();
}

std::string_view current_key(std::string_view benchmark, std::string_view key) {
  struct Renamed {
    std::string_view benchmark, before, now;  // of no benchmark: of all
  };
  constexpr Renamed kRenamed[] = {
      {"launch/graph", "api_ns", "calls_ns"},
      {"launch/graph", "per_launch_ns", "per_node_ns"},
      {"launch/threads", "per_launch_ns", "threads_per_launch_ns"},
      {"launch/dependent", "per_launch_ns", "per_kernel_ns"},
      {"", "uncovered_ns", "device_idle_ns"},
      {"", "gap_ns", "inter_kernel_gap_ns"},
      {"", "empty_queue_share", "starved_share"},
      {"", "beside_transfers_ns", "overlap_transfers_ns"},
  };
  for (const Renamed& renamed : kRenamed) {
    if ((renamed.benchmark.empty() || benchmark == renamed.benchmark) && key == renamed.before)
      return renamed.now;
  }
  return key;
}

std::string_view name_of(Direction direction) {
  return direction == Direction::lower_is_better ? "lower" : "higher";
}

}  // namespace launchgap
