// What somebody else's recorder kept of a job: the calls of its processes, and what its GPUs did,
// in the model that launchgap's own traces have. Times are nanoseconds on the recording's own
// clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/device/activity.h"

namespace launchgap::recording {

/// A GPU, as far as the file tells; what it does not tell is empty.
struct Gpu {
  std::uint64_t number = 0;  // by which records name it
  std::string name, uuid, compute_capability;
  std::optional<std::uint64_t> memory_bytes;
  auto operator<=>(const Gpu&) const = default;
};

struct Stream {
  std::uint64_t gpu = 0;  // Gpu::number
  std::uint64_t context = 0;
  std::uint64_t number = 0;
  auto operator<=>(const Stream&) const = default;
};

/// A part of the program that it named itself: an NVTX range, a step of PyTorch's profiler.
struct Range {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;
  std::uint32_t name = 0;                     // index into Trace::names
  std::optional<std::uint64_t> payload = {};  // a number that the program gave it
};

/// A thread was not on a CPU, by the host's scheduler.
struct RecordedPause {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;
};

/// What a program did with its allocator: a framework's, a library's. What the driver gave for it
/// is in Trace::memory.
enum class AllocationAction : std::uint8_t {
  allocate,
  give_back,  // by the program, while the device may still use it
  release,    // it can be used again
  fail,       // there was no memory for it
};

/// No allocation is larger: 1 PiB. Sums of what is live then stay within 64 bits.
inline constexpr std::uint64_t kMostAllocationBytes = std::uint64_t{1} << 50;

/// No machine has a GPU with a larger number.
inline constexpr std::uint64_t kMostGpu = 1023;

struct Allocation {
  std::int64_t at_ns = 0;
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t gpu = 0;     // Gpu::number
  std::uint64_t stream = 0;  // as the recorder numbers them; 0 where it does not tell
  std::uint32_t thread = 0;  // index into Process::threads
  AllocationAction action = AllocationAction::allocate;
  bool operator==(const Allocation&) const = default;
};

/// In `trace`, the stream of a record is an index into `streams`, the thread of a call one into
/// `threads`, and the id of a call that of its name.
struct Process {
  std::uint64_t pid = 0;
  std::optional<std::int64_t> rank;   // of a distributed job
  std::optional<std::int64_t> ranks;  // that the job has; not kept
  activity::Trace trace;
  std::vector<Stream> streams;
  std::vector<std::string> threads;  // as the recorder calls them
  std::vector<Range> ranges;
  std::vector<Allocation> allocations;
  std::vector<RecordedPause> pauses;  // where the recorder asked the scheduler; not kept
  std::uint64_t python_calls = 0;     // of Python, that the recorder traced too; not kept
  /// Its recorder may have none of the calls, or none of a GPU's kernels: where there are none,
  /// nothing is known of launches, or of idle time. Not kept.
  bool may_be_partial = false;
  bool lacks_calls() const { return may_be_partial && trace.calls.empty(); }

  /// Of all kinds.
  std::size_t events() const { return trace.size() + ranges.size() + allocations.size(); }

  std::uint32_t stream(const Stream& stream);
  std::uint32_t thread(std::string_view name);
  /// Correlation numbers of records have 32 bits, those of recorders up to 64. Throws Error if both
  /// kinds meet.
  std::uint32_t correlation(std::uint64_t number);

 private:
  std::map<Stream, std::uint32_t> stream_index_;
  std::unordered_map<std::string, std::uint32_t> thread_index_;
  std::unordered_map<std::uint64_t, std::uint32_t> long_correlations_;
  std::uint32_t largest_short_ = 0;
  std::uint32_t last_stream_ = 0;
};

/// Whether a record has a start and an end that can be.
bool has_times(const auto& record) {
  return record.begin_ns > 0 && record.end_ns >= record.begin_ns;
}

/// Calls `see` with each kernel, copy, fill and whole graph of a trace.
void for_each_work(auto& trace, auto&& see) {
  for (auto& record : trace.kernels) see(record);
  for (auto& record : trace.transfers) see(record);
  for (auto& record : trace.graphs) see(record);
}

/// A difference of times that cannot overflow, and the way back.
constexpr std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Moves all times of a process by `by_ns`. Throws Error where one does not fit.
void move_times(Process& process, std::int64_t by_ns);

/// Records that were not taken as they are, with the reason.
struct LeftOut {
  std::string what;  // "calls that are in two rows", in the plural
  std::uint64_t count = 0;
};

struct Recording {
  std::filesystem::path file;
  std::string recorder;        // "Nsight Systems 2024.5.1", "PyTorch's profiler"
  std::string form;            // "SQLite, schema 3.13.2", "Chrome trace"
  std::string clock;           // where its times begin: "Unix time"
  std::string driver_version;  // empty where it is not told
  std::string label;           // "train.py, process 4242"; empty where the file's name is better
  bool simulated = false;      // its GPUs were launchgap's own fakes
  /// How it was recorded, where that decides what it can be compared with: for the fingerprint.
  std::map<std::string, std::string> conditions;
  std::vector<Gpu> gpus;  // of the machine; not all need be used
  std::vector<Process> processes;
  std::vector<LeftOut> left_out;
  std::vector<std::string> remarks;

  void leave_out(std::string_view what, std::uint64_t count = 1);
  /// What it is called where there are several: its file's, or its program's.
  std::string name() const { return label.empty() ? file.filename().string() : label; }
};

/// Reads a file of any form that launchgap knows, by its content. Throws Error, in one line that
/// names the file and says what it is, why it cannot be read, and what to do.
Recording read_recording(const std::filesystem::path& file);

/// The forms, separated by commas: "profiles of nvprof, …"; also how each is made, where asked for.
std::string importable_forms(bool with_how);

// --- What the allocations of a process come to ---

struct AllocationCounts {
  std::uint64_t allocations = 0, releases = 0, failures = 0;
  std::uint64_t unseen = 0;   // releases of what was allocated before the recording began
  std::uint64_t missing = 0;  // releases that were not recorded: the address was given again
  std::uint64_t most_live_bytes = 0, live_at_end_bytes = 0;
  bool operator==(const AllocationCounts&) const = default;
};

/// Of one GPU. A block is live until it can be used again.
AllocationCounts count_allocations(const Process& process, std::uint64_t gpu);

}  // namespace launchgap::recording
