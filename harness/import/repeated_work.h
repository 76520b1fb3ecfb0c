// The kernels of a GPU by what they are, and where a job does the same work again and again.
//
// Only there a kernel can be compared with itself: one name and grid serves layers of different
// sizes, and times that differ between these say nothing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/import/recording.h"

namespace launchgap::recording {

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

}  // namespace launchgap::recording
