// Whether a kernel that does the same work again and again takes as long each time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/import/recording.h"

namespace launchgap::recording {

// --- The kernels of a GPU by what they are, and where a job does the same work again and again ---

// Only there a kernel can be compared with itself: one name and grid serves layers of different
// sizes, and times that differ between these say nothing.

/// A kernel by name, grid and block.
struct KernelSeries {
  using Shape = std::array<std::int32_t, 3>;
  std::uint32_t name = 0;
  Shape grid{}, block{};
  std::vector<std::uint32_t> runs;  // indices into Trace::kernels, by begin
};

/// Those that ran on a GPU, without runs whose times cannot be; by name, grid and block.
std::vector<KernelSeries> kernels_on(const Process& process, std::uint64_t gpu);

/// One run of a kernel within repeated work.
struct PlacedRun {
  std::uint32_t repeat = 0;  // which repetition, from 0
  std::uint32_t place = 0;   // which place in it: what is at one place is the same work
  std::int64_t ns = 0;       // how long it ran
  std::uint32_t stream = 0;  // whose repetition it is
};

struct RepeatedWork {
  std::uint32_t repeats = 0;                 // most of any stream
  std::vector<std::vector<PlacedRun>> runs;  // of each series, by begin; empty where it is in none
};

/// The repetitions of each stream's kernels. A repetition begins at a kernel that occurs once in
/// it: of the kernels that occur kLeastRepeats times or more, the one with the fewest occurrences
/// of which kSameWork of the stretches from one to the next have the same kernels in the same
/// order. Other stretches, as of a warm-up, take no part.
RepeatedWork repeated_work(const Process& process, const std::vector<KernelSeries>& series);

inline constexpr std::size_t kLeastRepeats = 10;
/// Of more kernels on a GPU none are compared: that would take more memory than the recording.
inline constexpr std::size_t kMostKernels = 2'000'000;
inline constexpr double kSameWork = 2.0 / 3;

// --- Whether one takes as long each time ---

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
