// What a process asked of a device and what the device did, as records with times of one clock: the
// model that tracing fills, whatever the source. CUPTI's records become these for a GPU; the host
// device writes its own.
//
// A call and the work that it caused share a correlation number. One call may cause several kernels
// (a graph), and a record may come in any order.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace launchgap::activity {

/// Who was called.
enum class Domain : std::uint8_t { host, driver, runtime };

/// What a call is for; only launches are joined to kernels.
enum class Purpose : std::uint8_t {
  other,
  launch,
  launch_graph,
  allocate,
  release,
  copy,
  fill,
  wait,  // for a device, a stream or an event
};
constexpr bool is_launch(Purpose purpose) {
  return purpose == Purpose::launch || purpose == Purpose::launch_graph;
}

/// Times are nanoseconds on the source's clock; 0 is a time that is not known.
struct Call {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;
  std::uint32_t thread = 0;
  std::uint32_t id = 0;  // of the function, in its domain
  Domain domain = Domain::host;
  Purpose purpose = Purpose::other;
  bool operator==(const Call&) const = default;
};

/// One execution of a kernel.
struct KernelRun {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;
  std::uint32_t stream = 0;
  std::uint32_t name = 0;  // index into Trace::names
  std::int32_t grid[3] = {1, 1, 1};
  std::int32_t block[3] = {1, 1, 1};
  bool operator==(const KernelRun&) const = default;
};

/// A copy or fill by the device, on a stream.
struct Transfer {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t correlation = 0;
  std::uint32_t stream = 0;
  bool fill = false;
  bool from_host = false;  // a copy, to the device
  bool to_host = false;    // a copy, from the device
  bool operator==(const Transfer&) const = default;
};

/// Why the source itself, or the driver, took time.
enum class OverheadKind : std::uint8_t {
  other,
  compiler,
  buffer_flush,
  instrumentation,
  resource,
  module_loading,
  lazy_function_loading,
  command_buffer_full,
  buffer_request,
};
const char* name_of(OverheadKind kind);

struct Overhead {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;  // 0: none is known
  OverheadKind kind = OverheadKind::other;
  bool operator==(const Overhead&) const = default;
};

/// A wait of the host, or of a stream for an event.
struct Wait {
  /// What `type` may be, as CUPTI has it.
  static constexpr std::uint32_t kHostForEvent = 1, kStreamForEvent = 2, kHostForStream = 3,
                                 kHostForContext = 4;
  /// A stream that is not told.
  static constexpr std::uint32_t kNoStream = ~std::uint32_t{0};

  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;
  std::uint32_t type = 0;
  std::uint32_t stream = kNoStream;        // that waits, or that the host waits for
  std::uint32_t event_stream = kNoStream;  // in which the event was recorded
  std::uint32_t recorded_by = 0;           // correlation of the call that did; 0: not told
  bool operator==(const Wait&) const = default;
};

/// Of CUPTI's kinds of memory: what a GPU has.
inline constexpr std::uint32_t kDeviceMemory = 3, kManagedMemory = 5;

struct Memory {
  std::int64_t at_ns = 0;
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t pool = 0;  // address of the pool; 0: from none
  std::uint32_t correlation = 0;
  std::uint32_t kind = 0;  // as CUPTI's memory kinds; 1: pageable host memory
  bool release = false;
  std::uint32_t gpu = 0;  // as the source numbers them
  bool operator==(const Memory&) const = default;
};

/// One launch of a graph, traced as a whole.
struct Graph {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint32_t stream = 0;
  bool operator==(const Graph&) const = default;
};

/// Everything that was delivered since the last time.
struct Trace {
  std::vector<Call> calls;
  std::vector<KernelRun> kernels;
  std::vector<Transfer> transfers;
  std::vector<Overhead> overheads;
  std::vector<Wait> waits;
  std::vector<Memory> memory;
  std::vector<Graph> graphs;
  std::uint64_t dropped = 0;  // records that the source says it lost
  std::uint64_t unknown = 0;  // records of a kind that was not asked for; what follows is not read

  /// The index of a kernel's name, which becomes readable where it is a mangled one of C++. A
  /// source may give back the memory of a name, so it is copied.
  std::uint32_t name_index(const char* name);
  const std::string& name(std::uint32_t index) const { return names_[index]; }
  const std::vector<std::string>& names() const { return names_; }
  /// Of records that were read from where they were kept; there are none yet.
  void set_names(std::vector<std::string> names) { names_ = given_names_ = std::move(names); }

  /// Forgets the records; keeps names and room.
  void clear();
  std::size_t size() const {
    return calls.size() + kernels.size() + transfers.size() + overheads.size() + waits.size() +
           memory.size() + graphs.size();
  }

 private:
  std::vector<std::string> names_, given_names_;
  std::unordered_map<const char*, std::uint32_t> index_by_pointer_;
  std::unordered_map<std::string, std::uint32_t> index_by_name_;
  const char* last_pointer_ = nullptr;
  std::uint32_t last_index_ = 0;
};

}  // namespace launchgap::activity
