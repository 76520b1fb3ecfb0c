// Whether a kernel that does the same work again and again takes as long each time.
#pragma once

#include <optional>
#include <span>

#include "harness/import/repeated_work.h"

namespace launchgap::recording {

/// A kernel's time in one repetition of the work, in the earlier half of the repetitions and in the
/// later one.
struct Change {
  double early_ns = 0, late_ns = 0;  // medians
  /// That the halves differ so much or more where nothing changed, on either side.
  double chance = 1;
  std::uint32_t repeats = 0;  // of the stream where it shows most
  /// They grow or shrink all the way: by Spearman's rank correlation of the stretches' medians with
  /// time, kRamp or more.
  bool ramp = false;
};
inline constexpr double kRamp = 0.9;

/// Each stream by itself, as each has repetitions of its own; of several, the one that tells most
/// surely, its chance times the number of streams. The halves' repetitions are united to at most 2
/// x 10 stretches of time, whose medians are compared by their ranks (Mann and Whitney, exact,
/// two-sided): so that what lasts for a few repetitions does not count as often as there are
/// repetitions in it. Nothing below kLeastRepetitions.
std::optional<Change> change(std::span<const PlacedRun> runs);
inline constexpr std::uint32_t kLeastRepetitions = 12;

/// Two times around which a kernel's runs crowd, at the same places of the work.
struct TwoModes {
  double slow_share = 0;  // of the runs, those of the slower mode
  double fast_ns = 0;     // median of the faster mode
  double apart_ns = 0;    // by how much the slower mode takes longer
};

/// Of each run, how much longer it took than the lower quartile at its place. There are two modes
/// if stats::modes finds more than one, and the two parts whose means differ most, each of 5 % of
/// the runs at least, lie apart by 4 times their scatter (the root mean square of 1.4826 times
/// either's median absolute deviation), by a tenth of the faster time, and by three ticks. Nothing
/// below 40 runs.
std::optional<TwoModes> two_modes(std::span<const PlacedRun> runs, std::int64_t tick_ns);

}  // namespace launchgap::recording
