// The launches of a recorded process, and what their streams were doing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/import/recording.h"
#include "harness/trace/join.h"

namespace launchgap::recording {

/// Of the stream that a launch's kernel ran on, when its call began: everything on it that began
/// before the kernel (kernels, copies, fills, graphs) had ended, and then the launch is what one
/// waits for; or had not, and then it is the device. Unknown if the kernel's record is lost or
/// impossible.
enum class StreamState : std::uint8_t { idle, busy, unknown };
std::string_view name_of(StreamState state);

struct RecordedLaunch {
  std::uint32_t call = 0;     // index into Trace::calls
  std::uint32_t kernels = 0;  // that have records
  std::uint32_t kernel = 0;   // the first of these, index into Trace::kernels
  StreamState state = StreamState::unknown;
  bool is_graph = false;
  /// Of its kernels, or of the graph as a whole; nothing where no record tells.
  std::optional<std::uint32_t> stream;  // of the first, index into Process::streams
  std::int64_t begin_ns = 0;            // of the first
  std::int64_t end_ns = 0;              // of the last
  std::int64_t overhead_ns = 0;         // as Launch::overhead_ns
  std::int64_t kernel_ns = 0;           // of all together
};

struct RecordedLaunches {
  std::vector<RecordedLaunch> launches;  // by the start of their calls; of those that have times
  JoinCounts counts;
};

/// A kernel may begin `clock_error_ns` before its launch: the recording's tick, and what it says of
/// its clocks.
RecordedLaunches launches_of(const Process& process, std::int64_t clock_error_ns);

/// The largest step, in nanoseconds, of which all times of calls and kernels are multiples, counted
/// from the first of them: 1000 where a recorder kept whole microseconds. 1 for a recording of
/// fewer than ten times.
std::int64_t tick_ns(const Process& process);

/// How many launches have kernels on several GPUs, as NCCL launches for all GPUs of a process at
/// once.
std::size_t launches_on_several_gpus(const Process& process);

}  // namespace launchgap::recording
