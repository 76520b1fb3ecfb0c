// Whether a recording's times of the host and of the device are on one clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/import/launches.h"

namespace launchgap::recording {

bool has_one_gpu(const Process& process);

/// How far the device's clock may be ahead at a time of the host's: at most, or at least.
struct ClockBound {
  std::int64_t host_ns, ahead_ns;
};

/// `most` for each launch that has its kernel, in the order of the calls: the kernel does not begin
/// before the call. `least` for each wait for the device that launches came before: what had been
/// launched when it began has ended when it returns.
struct ClockBounds {
  std::vector<ClockBound> most, least;
};
ClockBounds clock_bounds(const Process& process, const RecordedLaunches& launches);

/// By causes and effects: a kernel cannot begin before its launch, so the device's clock is ahead
/// by at most the shortest time from a call to its kernel; and what a wait for the device waited
/// for has ended when it returns, so it is ahead by at least the longest time that a kernel seems
/// to outlast such a wait. Of ten waits for a stream or more it is ahead by the shortest time that
/// work outlasts one, where even that is more than the conversion may be wrong.
struct ClockCheck {
  std::optional<std::int64_t> ahead_least_ns, ahead_most_ns;
  std::optional<double> drift_ppm;  // of the device's clock against the host's; only where it shows
  std::string problem;              // why no time may be taken from one clock to the other

  bool trusted() const { return problem.empty(); }
};

ClockCheck check_clocks(const Process& process, const RecordedLaunches& launches);

}  // namespace launchgap::recording
