// When a GPU had nothing to do for a process, and what it was waiting for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/import/cover.h"
#include "harness/import/launches.h"
#include "harness/import/recording.h"

namespace launchgap::recording {

/// What the GPU waits for while nothing runs on it. Of the work that ends the gap: if its call had
/// returned before, it was queued, and waited for something else. Else the time from the call on is
/// the launch's own, and before it counts what the thread that made the call was doing.
enum class IdleCause {
  queued,      // for another stream, a copy, another GPU; or the pause between two kernels
  launch,      // from the call to the start of its work
  waiting,     // the thread waited for the GPU
  allocating,  // it took memory or gave it back
  calling,     // it was in other calls of CUDA
  program,     // it was in none: the program itself
  unknown,     // the call has no record
};
inline constexpr std::size_t kIdleCauses = static_cast<std::size_t>(IdleCause::unknown) + 1;

/// A stretch of time of one GPU, in nanoseconds.
struct Idleness {
  std::int64_t span_ns = 0;
  std::array<std::int64_t, kIdleCauses> idle_ns{};

  std::int64_t idle() const;
  std::int64_t of(IdleCause cause) const { return idle_ns[static_cast<std::size_t>(cause)]; }
};

struct IdlePart {
  std::int64_t begin_ns, end_ns;
  IdleCause cause;
};

/// Calls of one name that kept the thread which brings the GPU's next work from bringing it.
struct Stall {
  IdleCause cause = IdleCause::waiting;  // or allocating
  std::uint32_t call = 0;                // Call::id: the name
  std::uint64_t gaps = 0;                // that such calls took part in; as many works came late
  std::int64_t idle_ns = 0;              // of these gaps, the time in the calls
  /// By how much these gaps would be shorter if the calls had taken no time at all: the thread
  /// would have gone on by that much earlier, also where the GPU was busy when the call began.
  std::int64_t lost_ns = 0;
  std::int64_t longest_ns = 0;  // the most that was lost in one gap
};

/// Times in which the GPU waited for one thing for kLeastPause or longer.
struct Pauses {
  static constexpr std::int64_t kLeastPause = 1'000'000;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, longest_ns = 0;  // of the time in which it waited for that
  std::optional<std::uint32_t> call;          // Call::id of the longest, where it is one of calls

  void add(std::int64_t ns, std::optional<std::uint32_t> id = {}) {
    if (ns < kLeastPause) return;
    ++count;
    total_ns += ns;
    if (ns > longest_ns) call = id;
    if (ns > longest_ns) longest_ns = ns;
  }
};

/// A launch whose kernel is lost or impossible may have kept the GPU busy from its call until the
/// next work of the same thread began, or until the end.
struct UnknownTime {
  std::int64_t begin_ns, end_ns;
};
/// By begin, none overlapping another.
std::vector<UnknownTime> unknown_times(const Process& process, const RecordedLaunches& launches);

/// The gaps of one GPU between its first work and its last, each with its cause. Without
/// `clocks_agree` every cause is unknown, and so is that of a gap in an unknown time.
class GpuGaps {
 public:
  GpuGaps(const Process& process,
          std::uint64_t gpu,
          bool clocks_agree,
          const std::vector<UnknownTime>& unknown = {});

  /// From the start of the first work to the end of the last; no gaps are known outside.
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  bool empty() const { return end_ns_ <= begin_ns_; }
  /// Of the part of a stretch of time that lies between first and last work.
  Idleness within(std::int64_t from_ns, std::int64_t to_ns) const;
  /// Of what the GPU waited there for the program, how much lies in these times of the host.
  std::int64_t program_in(const Cover& times, std::int64_t from_ns, std::int64_t to_ns) const;
  /// What waits and allocations cost, most first.
  const std::vector<Stall>& stalls() const { return stalls_; }
  /// In no call of CUDA.
  const Pauses& pauses() const { return waits_.program; }
  /// In one call that is none of a launch and neither waits for the GPU nor is about memory.
  const Pauses& long_calls() const { return waits_.calls; }
  /// In one launch call that was not that of the work which ended the gap.
  const Pauses& long_launches() const { return waits_.launches; }
  /// From a launch call to the start of its work.
  const Pauses& late_starts() const { return waits_.starts; }
  /// In which the GPU may have worked, of the time when no record says that it did.
  std::int64_t unknown_ns() const { return unknown_ns_; }

  /// Of the time with work queued, that before work of a graph: a graph may have kernels that the
  /// recorder did not record.
  std::int64_t queued_graph_ns() const { return waits_.queued_graph_ns; }

  struct LongWaits {
    Pauses program, calls, launches, starts;
    std::int64_t queued_graph_ns = 0;
  };

 private:
  /// Of the gap whose parts begin there.
  void see_pause(std::size_t first_part);
  void take_out(const std::vector<UnknownTime>& unknown);

  std::int64_t begin_ns_ = 0, end_ns_ = 0;
  std::vector<IdlePart> parts_;  // by begin, none overlapping another
  std::vector<Stall> stalls_;
  LongWaits waits_;
  std::int64_t unknown_ns_ = 0;
};

}  // namespace launchgap::recording
