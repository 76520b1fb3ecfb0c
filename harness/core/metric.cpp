#include "harness/core/metric.h"

#include <algorithm>
#include <string>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

constexpr auto kLower = Direction::lower_is_better;
constexpr auto kHigher = Direction::higher_is_better;

constexpr Metric kMetrics[] = {
    {"api_ns",
     "ns",
     kLower,
     "host_clock",
     "Time inside the launch call: from its begin until it returns, on an idle stream.",
     "the kernel, the wait"},
    {"roundtrip_ns",
     "ns",
     kLower,
     "host_clock",
     "From the begin of the launch call until the wait for what it launched returns, on an "
     "idle stream: call, start, kernel, completion and wake-up.",
     ""},
    {"per_launch_ns",
     "ns",
     kLower,
     "host_clock",
     "A burst of launches without waiting and one wait at the end, divided by their number.",
     "any clock reading between the launches"},
    {"calls_ns",
     "ns",
     kLower,
     "host_clock",
     "Time inside the calls that launch all kernels of one sample: as many calls as kernels, "
     "or one for a graph of them.",
     "the kernels, the wait"},
    {"per_node_ns",
     "ns",
     kLower,
     "host_clock",
     "From the begin of the first of those calls until the wait for all of their kernels "
     "returns, divided by the kernels.",
     ""},
    {"threads_per_launch_ns",
     "ns",
     kLower,
     "host_clock",
     "Wall time from the first thread's first launch until the last thread's wait returns, "
     "divided by the launches of all threads.",
     ""},
    {"flag_ns",
     "ns",
     kLower,
     "host_clock",
     "From the begin of the launch call until the host sees what the kernel wrote to mapped "
     "host memory, on an idle stream. A cross-check of launch_ns that needs no tracing; it "
     "includes the way back.",
     "the wait, which follows"},
    {"echo_ns",
     "ns",
     kLower,
     "host_clock",
     "A value written to mapped host memory until the answer of a kernel that was waiting for "
     "it: there and back, without a launch. Mean of 31 rounds.",
     "a launch"},
    {"api_record_ns",
     "ns",
     kLower,
     "trace",
     "The call's record, from begin to end: a launch, the mean of a burst's launches, or an "
     "allocation.",
     "what of the call lies outside of the record"},
    {"launch_ns",
     "ns",
     kLower,
     "trace",
     "From the begin of the launch call's record until the kernel begins.",
     ""},
    {"queue_ns",
     "ns",
     kLower,
     "trace",
     "From the end of the launch call's record until the kernel begins; missing where the "
     "kernel began before the call had returned. The share of launches that have one is its n "
     "by that of launch_ns.",
     "the call"},
    {"kernel_ns",
     "ns",
     kLower,
     "trace",
     "From a kernel's begin to its end; of a burst the mean; of library work the sum of the "
     "operation's kernels.",
     ""},
    {"overhead_ns",
     "ns",
     kLower,
     "trace",
     "Time that overhead records cover: loading of code, a full command buffer, the tracer's "
     "own buffers. Those with the launch's number count from the call until the kernel begins,"
     " the others during the call; where they overlap, once.",
     ""},
    {"gap_ns",
     "ns",
     kLower,
     "trace",
     "Time between two kernels of a burst in which the device runs neither; mean of the burst.",
     ""},
    {"uncovered_ns",
     "ns",
     kLower,
     "trace",
     "Time between the first kernel's begin and the last one's end that no kernel covers, per "
     "operation.",
     ""},
    {"kernels", "1", kLower, "trace", "Kernels per operation.", "the gate"},
    {"free_record_ns",
     "ns",
     kLower,
     "trace",
     "The record, from begin to end, of the call that gives an allocation back.",
     ""},
    {"flag_excess_ns",
     "ns",
     kLower,
     "trace",
     "flag_ns less launch_ns of the same launch: the way back of the flag, and what the host "
     "does around the call. Below zero, one of them is wrong.",
     ""},
    {"device_ns",
     "ns",
     kLower,
     "events",
     "Time on the device for one operation: two events around at least 1 ms of the same work, "
     "or 256 operations of it, divided by their number. All of it is enqueued behind a gate, "
     "so that launching is not measured.",
     "the calls that enqueue the work, the host's wait"},
    {"tflops",
     "TFLOP/s",
     kHigher,
     "derived",
     "Floating-point operations of the direct algorithm (2 per multiply-add) divided by "
     "device_ns. A burst of some ten milliseconds after 0.1 s of warm-up: a large GPU meets "
     "its power limit only later.",
     "what the algorithm really executes: Winograd and FFT execute less, so they can exceed "
     "the device's peak"},
    {"wall_per_launch_ns",
     "ns",
     kLower,
     "host_clock",
     "As others publish it: the host's time from the first launch until the last wait has "
     "returned, divided by the number of launches. The case says where it waits.",
     ""},
    {"event_per_launch_ns",
     "ns",
     kLower,
     "events",
     "As others publish it: time between an event before and an event after each launch, mean "
     "over the launches.",
     "the call"},
    {"per_kernel_ns",
     "ns",
     kLower,
     "host_clock",
     "Kernels that follow one another and one wait at the end, divided by their number: launch"
     " and work.",
     ""},
    {"per_op_ns",
     "ns",
     kLower,
     "host_clock",
     "A step of a chain of operations, with its waits, launches, allocations and the host's "
     "gaps, divided by their number.",
     ""},
    {"idle_share",
     "1",
     kLower,
     "derived",
     "Share of the chain's time, from 0 to 1, in which the device has nothing to run: 1 less "
     "the same operations from behind a gate by the step.",
     ""},
    {"empty_queue_share",
     "1",
     kLower,
     "trace",
     "Share of the chain's kernels, from 0 to 1, whose launch call began only when the kernel "
     "before had ended: the device had nothing queued. Above one half, the chain is bound by "
     "launches.",
     ""},
    {"capture_ns",
     "ns",
     kLower,
     "host_clock",
     "Recording a graph: from the begin of the capture until it is ended, all launches in it "
     "included.",
     "instantiation"},
    {"instantiate_ns",
     "ns",
     kLower,
     "host_clock",
     "Making an executable graph of a recorded one.",
     "capture, upload"},
    {"upload_ns",
     "ns",
     kLower,
     "host_clock",
     "Uploading an executable graph to the device, until the wait for it returns.",
     ""},
    {"first_roundtrip_ns",
     "ns",
     kLower,
     "host_clock",
     "The first launch of its kind, from the begin of the call until the wait for it returns: "
     "of a graph after its upload, or of a kernel in a fresh process.",
     ""},
    {"update_ns",
     "ns",
     kLower,
     "host_clock",
     "Giving an executable graph the parameters of a newly recorded one, in place of making it"
     " anew.",
     "the capture before it"},
    {"cpu_ns",
     "ns",
     kLower,
     "host_clock",
     "CPU time of the launching thread from the begin of the launch call until the wait for "
     "that kernel returns.",
     "other threads"},
    {"initialise_ns",
     "ns",
     kLower,
     "host_clock",
     "Loading the driver and initialising it (cuInit), in a fresh process.",
     ""},
    {"context_ns",
     "ns",
     kLower,
     "host_clock",
     "Making the context in a fresh process; for the host, starting its queue.",
     ""},
    {"module_ns",
     "ns",
     kLower,
     "host_clock",
     "Loading the module that holds the kernel, in a fresh process; for jit_uncached compiling"
     " is in it. Missing for lazy and eager where the driver compiled, since that depends on "
     "its cache.",
     ""},
    {"first_call_ns",
     "ns",
     kLower,
     "host_clock",
     "Time inside the first launch call of a process.",
     ""},
    {"second_roundtrip_ns",
     "ns",
     kLower,
     "host_clock",
     "The second launch of a process, from the begin of the call until the wait for it "
     "returns.",
     ""},
    {"queue_depth",
     "1",
     kHigher,
     "host_clock",
     "Launches that were taken behind a kernel that keeps the device busy, before a call had "
     "to wait.",
     ""},
    {"full_launch_ns",
     "ns",
     kLower,
     "host_clock",
     "A launch call where the queue is full, behind kernels of 20 us: it waits for one of them"
     " to end.",
     "the wait"},
    {"call_ns",
     "ns",
     kLower,
     "host_clock",
     "Time inside one allocation call.",
     "the first use of the memory"},
    {"first_touch_ns",
     "ns",
     kLower,
     "host_clock",
     "Writing the whole new allocation once and waiting for it: where memory is only promised "
     "by the call, this is where it is paid for. A GPU's is there already, so on a GPU it is "
     "the launch of a memset, its work and its wait.",
     "the allocation call"},
    {"free_ns",
     "ns",
     kLower,
     "host_clock",
     "Time inside the call that gives the allocation back.",
     "work that an asynchronous release leaves for later"},
};

}  // namespace

std::span<const Metric> all_metrics() {
  return kMetrics;
}

const Metric& metric(std::string_view key) {
  const auto found = std::ranges::find(kMetrics, key, &Metric::key);
  if (found == std::end(kMetrics)) throw Error("there is no metric '" + std::string(key) + "'");
  return *found;
}

std::string_view current_key(std::string_view benchmark, std::string_view key) {
  struct Renamed {
    std::string_view benchmark, before, now;
  };
  constexpr Renamed kRenamed[] = {
      {"launch/graph", "api_ns", "calls_ns"},
      {"launch/graph", "per_launch_ns", "per_node_ns"},
      {"launch/threads", "per_launch_ns", "threads_per_launch_ns"},
      {"launch/dependent", "per_launch_ns", "per_kernel_ns"},
  };
  for (const Renamed& renamed : kRenamed) {
    if (benchmark == renamed.benchmark && key == renamed.before) return renamed.now;
  }
  return key;
}

std::string_view name_of(Direction direction) {
  return direction == Direction::lower_is_better ? "lower" : "higher";
}

}  // namespace launchgap
