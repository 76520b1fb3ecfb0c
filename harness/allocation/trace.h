// What a program asked of an allocator: allocations and releases in their order, as `replay` plays
// them. Where it comes from (a file, a session's events, a pattern) makes no difference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/import/recording.h"

namespace launchgap::allocation {

/// One line of a trace.
enum class Op : std::uint8_t {
  alloc,
  free_req,   // the program gave it back, and the device may still use it
  free,       // it can be used again
  fail,       // the program asked for this much and got nothing
  sync,       // the program waited for its stream; without a stream, for the device
  step,       // a step of the program begins
  seg_alloc,  // the recorded allocator took memory from the driver
  seg_free,   // and gave some back
  mark,       // the program's own
};
/// "alloc", as files have it.
std::string_view name_of(Op op);

inline constexpr std::uint64_t kMostBytes = recording::kMostAllocationBytes;

/// The stream of a `sync` that waits for the whole device.
inline constexpr std::uint32_t kAllStreams = ~std::uint32_t{0};

struct TraceEvent {
  std::int64_t t_ns = 0;     // since any beginning
  std::uint64_t id = 0;      // of the allocation, never used again: a number, and no address
  std::uint64_t bytes = 0;   // what was asked for, or granted (TraceHead::sizes)
  std::uint64_t align = 0;   // a power of two; 0 where it is not told
  std::uint32_t device = 0;  // these three are small numbers that mean nothing else
  std::uint32_t stream = 0;
  std::uint32_t thread = 0;
  Op op = Op::alloc;
  bool operator==(const TraceEvent&) const = default;
};

/// Whether sizes are what the program asked for or what its allocator made of that.
enum class Sizes : std::uint8_t { requested, granted };

struct TraceHead {
  std::string source = "synthetic";  // who recorded it: "torch-profiler", "rmm", …
  Sizes sizes = Sizes::requested;
  bool truncated = false;  // it begins in the middle: what was live before was not seen
  std::uint32_t devices = 1;
};

/// What was not taken as it is, for the reader to know.
struct TraceFaults {
  std::uint64_t unseen_frees = 0;     // of allocations from before the trace; left out
  std::uint64_t missing_frees = 0;    // the address was allocated again
  std::uint64_t clock_went_back = 0;  // events with a time before their predecessor's
  std::uint64_t first_clock_line = 0;
};

/// Reads a trace from its beginning to its end.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual const TraceHead& head() const = 0;
  /// The next event, or false at the end. Throws Error that names the file and the line for what
  /// cannot be: a free of what is not live, a size that differs, a number that is none.
  virtual bool next(TraceEvent& event) = 0;
  /// Of what was read so far.
  virtual const TraceFaults& counts() const = 0;
  /// Once more from the beginning.
  virtual void rewind() = 0;
};

/// A trace in memory.
class TraceInMemory : public Trace {
 public:
  TraceInMemory(TraceHead head, std::vector<TraceEvent> events, const TraceFaults& counts = {})
      : head_(std::move(head)), events_(std::move(events)), counts_(counts) {}
  const TraceHead& head() const override { return head_; }
  bool next(TraceEvent& event) override {
    if (at_ == events_.size()) return false;
    event = events_[at_++];
    return true;
  }
  const TraceFaults& counts() const override { return counts_; }
  void rewind() override { at_ = 0; }
  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  TraceHead head_;
  std::vector<TraceEvent> events_;
  TraceFaults counts_;
  std::size_t at_ = 0;
};

}  // namespace launchgap::allocation
