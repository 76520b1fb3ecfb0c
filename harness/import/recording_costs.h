// What recording a program costs it, from starts with and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/import/recording.h"
#include "harness/record/session_record.h"

namespace launchgap::recording {

struct TimedStart {
  double wall_s = 0;  // of the start as a whole
  /// Between the driver's initialisation and the end, of all its processes together.
  std::optional<double> ran_ns;
};

/// The calls that a start has recorded. A call within another is part of it.
struct RecordedCalls {
  std::uint64_t count = 0;
  double covered_ns = 0, sum_ns = 0;  // the time in which any was going on, and all of theirs

  void add(const Process& process);
  /// Whether calls of different threads go on at once for more than a twentieth of their time: then
  /// what one takes longer, the program does not, and no time for each call can be told.
  bool overlap() const { return sum_ns > 1.05 * covered_ns; }
};

/// From as many starts of both kinds, those of one round in the same place. What a call takes
/// longer is the difference of `ran_ns`, for each of the calls: a program that waits for the GPU
/// anyway loses nothing by a longer call. Medians of the rounds' differences; their intervals (from
/// six rounds on) take no more than that rounds are independent.
RecordingCost cost_of(const std::string& level,
                      std::span<const TimedStart> plain,
                      std::span<const TimedStart> recorded,
                      const RecordedCalls& calls);

}  // namespace launchgap::recording
