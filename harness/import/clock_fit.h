// How far a device's clock is ahead of the host's at each time of a recording, as far as causes
// come before effects, and the recording with that taken back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/import/launches.h"

namespace launchgap::recording {

// --- Whether a recording's times of the host and of the device are on one clock ---

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

// --- The line ---

/// The device's clock shows the host's time t plus ahead_ns + drift (t - from_ns).
struct ClockLine {
  std::int64_t from_ns = 0;   // on the host's clock
  std::int64_t ahead_ns = 0;  // there
  double drift_ppm = 0;
  /// By how much the line may be wrong anywhere in the recording: any line that is nowhere farther
  /// away than that may be the true one.
  double error_ns = 0;
};

/// The line in the middle of all that contradict nothing: no kernel begins before its launch call,
/// and no wait for the device returns before the kernels that were launched before it have ended,
/// each by more than a tick. (Duda, Harrus, Haddad and Bernard, "Estimating global time in
/// distributed systems", ICDCS 1987.) Nothing if there is no such line, if nothing waits for the
/// device, or if the process has several devices: each has a clock of its own, and no record tells
/// which of them a wait was for.
std::optional<ClockLine> fit_clock(const Process& process,
                                   const RecordedLaunches& launches,
                                   std::int64_t tick_ns);

/// The same process with what the device did on the host's clock. Durations stay as they are.
Process on_host_clock(const Process& process, const ClockLine& line);

/// A process whose clocks agree as far as may be, with its launches.
///
/// Where check_clocks finds that they disagree, the device's times are moved by fit_clock's line.
/// That is kept if it is known well enough to tell launches apart (its error is at most a tenth of
/// their median on idle streams), if no more than one kernel in a thousand begins before its launch
/// then, and if check_clocks is content. Else the times stay as they were recorded, and
/// `clocks.problem` says why they cannot be used.
class AlignedProcess {
 public:
  AlignedProcess(const Process& recorded, std::int64_t tick_ns);

  const Process& process() const { return moved_ ? *moved_ : recorded_; }
  /// As they were recorded, unless they were corrected.
  RecordedLaunches launches;
  ClockCheck clocks;
  /// Where the clocks disagree and a line is known, whether or not it is good enough.
  std::optional<ClockLine> line;
  bool corrected() const { return moved_.has_value(); }

 private:
  const Process& recorded_;
  std::optional<Process> moved_;
};

}  // namespace launchgap::recording
