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
     "Time inside the launch call: from its begin until it returns, on an idle stream."},
    {"roundtrip_ns",
     "ns",
     kLower,
     "host_clock",
     "From the begin of the launch call until the wait for that kernel returns, on an idle "
     "stream."},
    {"per_launch_ns",
     "ns",
     kLower,
     "host_clock",
     "A burst of launches without waiting and one wait at the end, divided by their number."},
    {"flag_ns",
     "ns",
     kLower,
     "host_clock",
     "From the begin of the launch call until the host sees what the kernel wrote to mapped host "
     "memory, on an idle stream. A cross-check of launch_ns that needs no tracing; it includes the "
     "way back."},
    {"echo_ns",
     "ns",
     kLower,
     "host_clock",
     "A value written to mapped host memory until the answer of a kernel that was waiting for it: "
     "there and back, without a launch. Mean of 31 rounds."},
    {"api_record_ns",
     "ns",
     kLower,
     "trace",
     "The call's record, from begin to end: a launch, the mean of a burst's launches, or an "
     "allocation."},
    {"launch_ns",
     "ns",
     kLower,
     "trace",
     "From the begin of the launch call's record until the kernel begins."},
    {"queue_ns",
     "ns",
     kLower,
     "trace",
     "From the end of the launch call's record until the kernel begins; missing where the kernel "
     "began before the call had returned."},
    {"kernel_ns",
     "ns",
     kLower,
     "trace",
     "Time of the operation's kernels, from begin to end of each."},
    {"overhead_ns",
     "ns",
     kLower,
     "trace",
     "Time between call and kernel that overhead records cover: loading of code, a full command "
     "buffer, the tracer's own buffers."},
    {"gap_ns",
     "ns",
     kLower,
     "trace",
     "Time between two kernels of a burst in which the device runs neither; mean of the burst."},
    {"uncovered_ns",
     "ns",
     kLower,
     "trace",
     "Time between the first kernel's begin and the last one's end that no kernel covers, per "
     "operation."},
    {"kernels", "1", kLower, "trace", "Kernels per operation."},
    {"free_record_ns",
     "ns",
     kLower,
     "trace",
     "The record, from begin to end, of the call that gives an allocation back."},
    {"flag_excess_ns",
     "ns",
     kLower,
     "trace",
     "flag_ns less launch_ns of the same launch: the way back of the flag, and what the host does "
     "around the call. Below zero, one of them is wrong."},
    {"device_ns",
     "ns",
     kLower,
     "events",
     "Time on the device for one operation: two events around at least 1 ms of the same work, or "
     "256 "
     "operations of it, enqueued behind a gate so that launching is not measured, divided by their "
     "number."},
    {"tflops",
     "TFLOP/s",
     kHigher,
     "derived",
     "Floating-point operations of the direct algorithm (2 per multiply-add) divided by device_ns. "
     "Algorithms that need fewer operations can exceed the device's peak."},
    {"call_ns", "ns", kLower, "host_clock", "Time inside one allocation call."},
    {"first_touch_ns",
     "ns",
     kLower,
     "host_clock",
     "Writing the whole new allocation once and waiting for it: where memory is only promised by "
     "the call, "
     "this is where it is paid for."},
    {"free_ns", "ns", kLower, "host_clock", "Time inside the call that gives the allocation back."},
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

std::string_view name_of(Direction direction) {
  return direction == Direction::lower_is_better ? "lower" : "higher";
}

}  // namespace launchgap
