// What a pattern takes where launches cost so much and kernels last so long: a walk through its
// operations, on paper.
#pragma once

#include <optional>

#include "harness/core/pattern.h"

namespace launchgap {

/// In nanoseconds.
struct LaunchCosts {
  /// Of a call that brings work to the device; nothing: each as it was recorded.
  std::optional<double> call_ns;
  /// Of a call that allocates or gives back; nothing: each as it was recorded.
  std::optional<double> allocation_ns;
  double start_ns = 0;       // from the end of the call to the start of its work, on an idle stream
  double wake_ns = 0;        // from the end of the work to the return of a wait for it
  double gap_factor = 1;     // of the host's own time
  double kernel_factor = 1;  // of the time of kernels
  double kernel_excess_ns = 0;  // that each kernel lasts longer
  double copy_factor = 1;       // of the time of copies and fills
};

/// No calls, no starts, no waking; allocations take so long each: only these, the host's own time
/// and the device's work.
LaunchCosts free_launches(double allocation_ns = 0);
/// And no time of the host: the work alone, in the order that streams, events and waits give it.
LaunchCosts work_alone();

/// From the beginning of the pattern to the end of all of its work, in nanoseconds. A stream does
/// its work in order, and takes kLaunchQueue launches ahead; streams do not slow each other down. A
/// graph begins behind the stream of its first work, which goes on when all of it has ended.
double modelled_ns(const Pattern& pattern, const LaunchCosts& costs);

/// Launches that a stream holds before a launch call waits for the first of them.
inline constexpr std::size_t kLaunchQueue = 1023;

}  // namespace launchgap
