// Whether a recording's times of the host and of the device are on one clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/recording/launches.h"

namespace launchgap::recording {

/// By causes and effects: a kernel cannot begin before its launch, so the device's clock is ahead
/// by at most the shortest time from a call to its kernel; and what a wait for the device waited
/// for has ended when it returns, so it is ahead by at least the longest time that a kernel seems
/// to outlast such a wait.
struct ClockCheck {
  std::optional<std::int64_t> ahead_least_ns, ahead_most_ns;
  std::optional<double> drift_ppm;  // of the device's clock against the host's; only where it shows
  std::string problem;              // why no time may be taken from one clock to the other

  bool trusted() const { return problem.empty(); }
};

ClockCheck check_clocks(const Process& process, const RecordedLaunches& launches);

}  // namespace launchgap::recording
