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
