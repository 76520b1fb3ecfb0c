// How far the times of launches scatter, in which an error of the trace's clock shows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/device/activity.h"
#include "harness/trace/join.h"

namespace launchgap {

/// From each call whose begin `belongs` until the first of its kernels begins, in nanoseconds.
std::vector<double> launch_times(
    const activity::Trace& trace,
    const Joined& joined,
    const std::function<bool(std::int64_t)>& belongs = [](std::int64_t) { return true; });

/// How far `launch_ns` of launches into an idle stream scatter: five robust standard deviations, at
/// most 5 us. An error of the conversion of the device's clock to the host's shows in it, so that
/// error is not larger. 0 for fewer than 20 values.
std::int64_t scatter_of_launches(std::vector<double> launch_ns);

}  // namespace launchgap
