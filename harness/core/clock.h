// The clock of every host-side time in launchgap, and times of day.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace launchgap {

/// Nanoseconds of CLOCK_MONOTONIC: never steps, is slewed by at most 500 ppm, and costs about 20 ns
/// to read through the vDSO. Comparable between processes of one boot.
inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// --- Times of day as records have them: "2026-11-22T03:00:00Z" ---

/// Of seconds since 1970.
std::string utc_text(std::int64_t unix_s);

/// Seconds since 1970; absent for what is no such text.
std::optional<std::int64_t> parse_utc(std::string_view text);

}  // namespace launchgap
