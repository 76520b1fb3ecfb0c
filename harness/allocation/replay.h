// A trace played to an allocator, once: how long its calls take, how much it holds, and whether it
// comes to the end.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/allocation/block_allocator.h"
#include "harness/allocation/trace.h"
#include "harness/record/replay_record.h"

namespace launchgap::allocation {

/// Times of many calls, counted by how long they took, in little memory: each power of two has 32
/// classes, so a quantile is right within 3 %.
class TimeCounts {
 public:
  void add(std::int64_t nanoseconds) {
    const auto time = static_cast<std::uint64_t>(nanoseconds < 0 ? 0 : nanoseconds);
    ++counts_[index_of(time)];
    ++n_;
    if (time > longest_) longest_ = time;
  }
  std::uint64_t n() const { return n_; }
  std::uint64_t longest_ns() const { return longest_; }
  /// Nothing of none.
  std::optional<double> quantile_ns(double p) const {
    if (n_ == 0) return std::nullopt;
    const auto rank = static_cast<std::uint64_t>(p * static_cast<double>(n_ - 1));
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (below > rank) return middle_of(i);
    }
    return static_cast<double>(longest_);
  }

 private:
  static constexpr unsigned kBits = 5;
  static constexpr std::uint64_t kClasses = std::uint64_t{1} << kBits;

  static std::size_t index_of(std::uint64_t time) {
    if (time < kClasses) return time;
    const auto shift = static_cast<unsigned>(std::bit_width(time)) - kBits - 1;
    return (shift + 1) * kClasses + ((time >> shift) - kClasses);
  }
  static double middle_of(std::size_t index) {
    if (index < kClasses) return static_cast<double>(index);
    const std::size_t shift = index / kClasses - 1;
    const auto width = static_cast<double>(std::uint64_t{1} << shift);
    return (static_cast<double>(kClasses + index % kClasses) + 0.5) * width;
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kClasses> counts_{};
  std::uint64_t n_ = 0, longest_ = 0;
};

/// How an allocator stands of which so many bytes are live.
MemoryMoment moment_of(const BlockAllocator& allocator, std::uint64_t live_bytes);

/// The memory that an allocator holds, drawn with so many letters: '*' is used, 'x' is wasted by
/// rounding, '_' is free. What has more of a letter's bytes decides. Regions follow one another.
/// Nothing where it holds none.
std::optional<std::string> occupancy(const BlockAllocator& allocator, std::size_t columns = 100);

/// What made an allocation that had failed succeed, each only after those before it had not.
enum class RecoveryStep : std::uint8_t {
  stream_wait,  // waiting for the stream: what was freed on it was still in use
  device_wait,  // waiting for the device: what was freed on another stream was
  trim,         // giving back what the allocator only kept
  destroy,      // releasing everything and beginning anew: what was live lay in the way
  none,         // nothing: with what is live it is more than there is
  rounding,     // nothing: with what is live, each rounded up to pages, it is more than there is
  taken,        // nothing: others, or the allocator for itself, have what is free of the limit
};
/// "stream_wait", as JSON has it.
std::string_view name_of(RecoveryStep step);

/// What a replay plays to: an allocator of launchgap's own, or a device's.
class Player {
 public:
  virtual ~Player() = default;
  /// Makes ready, before a call is timed: places for so many live allocations, and what the stream
  /// of the next one needs. Grows as need be.
  virtual void prepare(std::uint32_t places, std::uint32_t stream) = 0;
  /// The timed calls; `place` is where the allocation is kept until it is released. False if there
  /// is no memory.
  virtual bool allocate(std::uint32_t place,
                        std::uint64_t bytes,
                        std::uint32_t stream,
                        std::uint64_t align) = 0;
  virtual void release(std::uint32_t place, std::uint64_t bytes) = 0;
  /// Writes all of an allocation and waits for that. Simulated memory cannot be written.
  virtual void touch(std::uint32_t place, std::uint64_t bytes) = 0;
  virtual void wait_for_stream(std::uint32_t stream) = 0;
  virtual void wait_for_device() = 0;
  virtual void trim() = 0;
  /// Forgets what is live, gives everything back and begins anew.
  virtual void begin_anew() = 0;
  /// What an allocation of so many bytes takes, each for itself; nothing where that is not known,
  /// or where `holder()` tells more.
  virtual std::optional<std::uint64_t> granted_bytes(std::uint64_t /*bytes*/) const {
    return std::nullopt;
  }
  /// What is free of the device's memory, where that can be asked.
  virtual std::optional<std::uint64_t> free_bytes() { return std::nullopt; }
  /// How much may be live.
  virtual std::uint64_t limit_bytes() const = 0;
  /// What it holds, where it can be known.
  virtual const BlockAllocator* holder() const { return nullptr; }
  /// How much it has taken: what is live, and what it only keeps as far as it tells.
  virtual std::uint64_t reserved_bytes() const = 0;
};

/// What a trace asks for on one device, whoever answers.
struct TraceFacts : TraceSummary {
  std::uint64_t largest_align = 0;
  std::uint64_t other_allocations = 0;  // on other devices
};

/// Of `device`; if none is named, of that with most allocations.
TraceFacts facts_of(Trace& trace, std::optional<std::uint32_t> device);

struct ReplayOptions {
  bool paced = false;  // each call at its own time, as far as the calls before let it
  bool touch = false;  // each allocation is written, untimed, before the trace goes on
  std::size_t most_moments = 400;
  std::size_t most_pictures = 24;
  /// Where given, told after each event that an allocator sees, with the place of its
  /// allocation; the calls are not timed then.
  std::function<void(std::uint64_t event, const TraceEvent&, std::uint32_t place)> after_each = {};
};

struct Replay {
  bool completed = false;
  std::uint64_t allocations = 0, releases = 0;       // that succeeded
  std::optional<std::uint64_t> peak_reserved_bytes;  // where it can be known
  double calls_s = 0;                                // time spent in all calls together
  /// The time of an allocation that failed at first is that of the attempt, what cured it, and the
  /// attempt that succeeded.
  TimeCounts allocate_times, release_times;
  std::uint64_t recoveries = 0;  // allocations that failed at first
  std::optional<AllocationFailure> failure;
  std::vector<MemoryMoment> moments;    // evenly spread over the events
  std::optional<MemoryMoment> at_peak;  // when most was live
};

/// Plays all events of the device of `facts`. At each allocation that fails it takes the recovery
/// steps up to `trim`, and goes on if one of them cured it; which one cured the first is noted.
/// What is live is not destroyed for an allocation for which there is too little, however it lies:
/// that is `none`, `rounding` or `taken`. Memory is for what is live, never for the trace. Throws
/// what the trace throws.
Replay replay(Trace& trace, const TraceFacts& facts, Player& player, const ReplayOptions& options);

/// Plays to one of launchgap's own allocators over some memory.
class BlockPlayer : public Player {
 public:
  BlockPlayer(Memory& memory, const BlockAllocatorInfo& info, std::uint64_t limit_bytes);
  void prepare(std::uint32_t places, std::uint32_t) override;
  bool allocate(std::uint32_t place,
                std::uint64_t bytes,
                std::uint32_t stream,
                std::uint64_t align) override;
  void release(std::uint32_t place, std::uint64_t) override;
  void touch(std::uint32_t, std::uint64_t) override {}
  void wait_for_stream(std::uint32_t) override {}
  void wait_for_device() override {}
  void trim() override { allocator_->trim(); }
  void begin_anew() override;
  std::uint64_t limit_bytes() const override { return limit_; }
  const BlockAllocator* holder() const override { return allocator_.get(); }
  std::uint64_t reserved_bytes() const override { return allocator_->reserved_bytes(); }
  Address address(std::uint32_t place) const { return allocator_->address(blocks_[place]); }
  std::uint64_t block_bytes(std::uint32_t place) const {
    return allocator_->granted_bytes(blocks_[place]);
  }

 private:
  Memory& memory_;
  const BlockAllocatorInfo& info_;
  std::uint64_t limit_;
  std::unique_ptr<BlockAllocator> allocator_;
  std::vector<BlockId> blocks_;
};

}  // namespace launchgap::allocation
