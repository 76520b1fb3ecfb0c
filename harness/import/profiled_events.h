// What the profilers of TensorFlow and JAX tell of a program, put into a recording: the same events
// stand in their XPlanes and in the traces that TensorBoard shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Who recorded it.
inline constexpr std::string_view kProfiler = "the profiler of TensorFlow and JAX";

/// What is told of an event beside its name and time; named as in the files.
enum class EventStat : std::uint8_t {
  other,
  correlation,
  context,
  group,  // of the step
  step,
  address,
  bytes,
  allocator,
  kernel_details,  // "regs:38 shm:0 grid:160,1,1 block:1024,1,1"
  copy_details,    // "size:112 dest:4 async:0"
  fill_details,
  memory_details,
};
EventStat stat_named(std::string_view name);

/// An event as it stands in the file; what is absent is empty.
struct ProfiledEvent {
  std::string_view name;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::optional<std::uint64_t> correlation, group, step, address, bytes;
  std::uint64_t context = 0;
  std::string_view kernel_details, copy_details, fill_details, allocator;
  bool of_memory = false;

  void set(EventStat stat, std::uint64_t number);
  /// Also a number that is written as text; a context is "$$5".
  void set(EventStat stat, std::string_view text);
};

/// 4 and "" of "/device:GPU:4", 0 and "/stream:13 Compute" of "/gpu:0/stream:13 Compute".
struct GpuRow {
  std::uint64_t gpu;
  std::string_view rest;
};
/// Nothing for other rows and for a number that no GPU has.
std::optional<GpuRow> gpu_row(std::string_view name);
/// The number of "Stream #134(Compute)"; nothing for lines that are derived from those of streams.
std::optional<std::uint64_t> stream_of_line(std::string_view line);

/// Puts events into the one process of such a file.
class ProfiledEvents {
 public:
  ProfiledEvents(Recording& recording, Process& process)
      : recording_(recording), process_(process) {}

  /// What a GPU did. Throws Error for correlation numbers that cannot be told apart.
  void take_of_gpu(std::uint64_t gpu, std::uint64_t stream, const ProfiledEvent& event);
  /// What a thread did: calls that have a correlation number, allocations and steps are kept.
  void take_of_host(std::string_view thread, const ProfiledEvent& event);
  /// When all is taken: tells calls of launches from others by what they started, makes steps of
  /// groups, and says what the file does not hold.
  void finish();

 private:
  struct Group {
    std::int64_t begin_ns, end_ns;
    std::uint32_t thread;  // of the first event
    bool launches = false;
  };

  bool has_time(const ProfiledEvent& event);
  std::uint32_t name_index(std::string_view name);
  void take_call(std::uint32_t thread, const ProfiledEvent& event);
  void take_allocation(std::uint32_t thread, const ProfiledEvent& event);
  void resolve_calls();
  void make_steps();
  void remark_on_copies();

  Recording& recording_;
  Process& process_;
  /// A call that does not say what it is for.
  struct Untold {
    std::uint32_t call;  // index into Trace::calls
    std::optional<std::uint64_t> group;
  };

  std::string text_;  // of the name last asked for
  std::vector<Untold> untold_;
  std::map<std::uint64_t, Group> groups_;
  bool has_steps_ = false;
};

}  // namespace launchgap::recording
