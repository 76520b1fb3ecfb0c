// A trace made ready to be played many times: allocations have places instead of numbers, and
// nothing is left but what an allocator sees.
#pragma once

#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "harness/allocation/trace.h"

namespace launchgap::allocation {

/// What an allocator is told. 16 bytes, for there are many.
class Step {
 public:
  enum class Kind : std::uint8_t { allocate, release, wait };

  Step() = default;
  /// `align` is 0 or a power of two, `place` that of the allocation among those that are live.
  Step(Kind kind,
       std::uint64_t bytes,
       std::uint64_t align,
       std::uint32_t place,
       std::uint32_t stream)
      : packed_(bytes << 8 | log2_of(align) << 2 | static_cast<std::uint64_t>(kind)),
        place_(place),
        stream_(stream) {}

  Kind kind() const { return static_cast<Kind>(packed_ & 3); }
  std::uint64_t bytes() const { return packed_ >> 8; }
  std::uint64_t align() const {
    const std::uint64_t log2 = packed_ >> 2 & 63;
    return log2 == 0 ? 0 : std::uint64_t{1} << log2;
  }
  std::uint32_t place() const { return place_; }
  std::uint32_t stream() const { return stream_; }

 private:
  static std::uint64_t log2_of(std::uint64_t align) {
    return align == 0 ? 0 : static_cast<std::uint64_t>(std::countr_zero(align));
  }
  std::uint64_t packed_ = static_cast<std::uint64_t>(Kind::wait);  // bytes, align, kind
  std::uint32_t place_ = 0, stream_ = 0;
};
static_assert(sizeof(Step) == 16);

/// Gives live allocations places, from 0 on; one that is free is used again.
class Places {
 public:
  std::uint32_t take(std::uint64_t id);
  /// Of one that is live, which it is no longer.
  std::uint32_t give_back(std::uint64_t id);
  /// Of all that were ever needed at one time.
  std::uint32_t most() const { return most_; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::vector<std::uint32_t> unused_;
  std::uint32_t most_ = 0;
};

/// False for what no allocator sees: steps and marks, and allocations of no bytes, for which
/// allocators have nothing.
bool step_of(const TraceEvent& event, Places& places, Step& step);

/// How much was live, in bytes as they were asked for.
struct LiveBytes {
  std::uint64_t now = 0, most = 0;

  void add(std::uint64_t bytes) {
    now += bytes;
    if (now > most) most = now;
  }
  void remove(std::uint64_t bytes) { now -= bytes; }
};

struct Script {
  std::vector<Step> steps;
  std::uint32_t places = 0;
  std::uint64_t peak_live_bytes = 0;
};

/// All of a trace's events on this device. Throws Error if they are too many for memory, and what
/// the trace throws.
Script script_of(Trace& trace, std::uint32_t device);

}  // namespace launchgap::allocation
