// What recording a program costs it, from starts with and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/record/session_record.h"

namespace launchgap::recording {

struct TimedStart {
  double wall_s = 0;  // of the start as a whole
  /// Between the driver's initialisation and the end, of all its processes together.
  std::optional<double> ran_ns;
};

/// From as many starts of both kinds, those of one round in the same place. What a launch call
/// takes longer is the difference of `ran_ns`, for each of `launches`: a program that waits for the
/// GPU anyway loses nothing by a longer call. Medians of the rounds' differences; their intervals
/// (from six rounds on) take no more than that rounds are independent.
RecordingCost cost_of(const std::string& level,
                      std::span<const TimedStart> plain,
                      std::span<const TimedStart> recorded,
                      std::uint64_t launches);

}  // namespace launchgap::recording
