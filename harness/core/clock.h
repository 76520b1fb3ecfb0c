// The clock of every host-side time in launchgap.
#pragma once

#include <cstdint>
#include <ctime>

namespace launchgap {

/// Nanoseconds of CLOCK_MONOTONIC: never steps, is slewed by at most 500 ppm, and costs about 20 ns
/// to read through the vDSO. Comparable between processes of one boot.
inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace launchgap
