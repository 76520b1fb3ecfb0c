// A delay within each call that launches or allocates: a known slowdown, to see whether it is
// found. LAUNCHGAP_DELAY_NS asks for it; without it each call has one branch more, which is always
// predicted.
#pragma once

#include <cstdint>
#include <optional>

namespace launchgap {

struct InsertedDelay {
  double asked_ns = 0;
  double inserted_ns = 0;  // mean of many delays in a row, by the clock
  double least_ns = 0;     // no shorter one can be inserted
};

/// Reads LAUNCHGAP_DELAY_NS and finds out how many additions in a row that is, which takes some ten
/// milliseconds; from now on each call has them. A delay that is shorter than can be inserted
/// becomes the shortest one. Nothing, where the variable is not set or 0. Call it on the thread
/// that measures, before it does. Throws UsageError for what is no number from 0 to 1e9.
std::optional<InsertedDelay> prepare_inserted_delay();

/// Measures what is inserted once more, as it is by now.
double measured_delay_ns();

namespace inserted_delay {
extern std::uint64_t steps;  // 0: none
/// Adds 1 to `sum` so many times, one after the other.
std::uint64_t run(std::uint64_t count, std::uint64_t sum) noexcept;
}  // namespace inserted_delay

/// Within the timed call, before what it does.
inline void insert_delay() {
  if (inserted_delay::steps != 0) [[unlikely]]
    inserted_delay::run(inserted_delay::steps, 0);
}

}  // namespace launchgap
