// Which call launched which kernel.
//
// Calls and kernels are joined by correlation number: one call may have many kernels, records come
// in any order and from several threads, and where calls nest (a library's runtime call around the
// driver's) the outermost owns the kernels. Nothing is dropped: what does not fit is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/device/activity.h"

namespace launchgap {

/// One outermost launch call.
struct Launch {
  std::uint32_t call = 0;     // index into Trace::calls
  std::int64_t begin_ns = 0;  // of the call; of its first kernel if the call's record has no time
  std::uint32_t first_kernel = 0;  // into Joined::kernels
  std::uint32_t kernel_count = 0;
  bool is_graph = false;         // a graph traced as a whole: its kernels have no records
  bool impossible = false;       // the record of the call or of one of its kernels cannot be
  std::int64_t overhead_ns = 0;  // time from the call on that overheads cover
};

/// What a join found wrong, each a number of records. All are zero in a healthy trace but `overlap`
/// and `nested`, which say something about the program.
struct JoinCounts {
  std::uint64_t launches = 0;  // outermost launch calls
  std::uint64_t kernels = 0;
  std::uint64_t joined = 0;  // kernels that have their launch
  std::uint64_t kernels_without_launch = 0;
  std::uint64_t launches_without_kernel = 0;
  std::uint64_t dropped = 0;     // the source says that it lost them
  std::uint64_t unknown = 0;     // of a kind that nobody asked for
  std::uint64_t zero = 0;        // calls and kernels without a time
  std::uint64_t inverted = 0;    // that end before they begin
  std::uint64_t early = 0;       // kernels that begin before their launch is called, by more than
                                 // the conversion of the device's clock may be wrong
  std::uint64_t duplicates = 0;  // correlation numbers of more than one launch
  std::uint64_t overlap = 0;     // kernels that begin before their launch returns: legitimate
  std::uint64_t nested = 0;      // launch calls inside another

  JoinCounts& operator+=(const JoinCounts& other);
  /// Records that cannot be.
  std::uint64_t impossible() const {
    return dropped + unknown + zero + inverted + early + duplicates;
  }
  /// "3 records dropped, 1 kernel before its launch"; empty if nothing is impossible.
  std::string describe_impossible() const;
};

struct Joined {
  std::vector<Launch> launches;        // by start of the call; last, those whose call cannot be
  std::vector<std::uint32_t> kernels;  // indices into Trace::kernels, grouped by launch and within
                                       // it by begin
  JoinCounts counts;

  std::span<const std::uint32_t> kernels_of(const Launch& launch) const {
    return std::span(kernels).subspan(launch.first_kernel, launch.kernel_count);
  }
};

/// Joins a trace; about 25 ns per record. Kernels with impossible times take no part, and their
/// launch says that they were there; a launch call with impossible times keeps its kernels, so that
/// one such record is one. A kernel may begin `clock_error_ns` before its launch.
Joined join(const activity::Trace& trace, std::int64_t clock_error_ns = 0);

// --- How far the times of launches scatter, in which an error of the trace's clock shows ---

/// From each call whose begin `belongs` until the first of its kernels begins, in nanoseconds.
std::vector<double> launch_times(
    const activity::Trace& trace,
    const Joined& joined,
    const std::function<bool(std::int64_t)>& belongs = [](std::int64_t) { return true; });

/// How far `launch_ns` of launches into an idle stream scatter: five robust standard deviations, at
/// most 5 us. An error of the conversion of the device's clock to the host's shows in it, so that
/// error is not larger. 0 for fewer than 20 values.
std::int64_t scatter_of_launches(std::vector<double> launch_ns);

}  // namespace launchgap
