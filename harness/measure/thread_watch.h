// Looks at what the system does to the thread that launches: between samples, and never within one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "harness/core/block.h"
#include "harness/core/clock.h"
#include "harness/core/thread_events.h"

namespace launchgap {

/// As they are now; they only ever grow, but for the CPU.
struct ThreadCounters {
  std::uint64_t voluntary = 0, involuntary = 0, faults = 0;
  int cpu = -1;
};
/// Of the calling thread.
ThreadCounters read_thread_counters();

/// Whether a metric is a time on the host's clock. CPU time is none: it stands still where a thread
/// waits.
bool is_watched(std::string_view metric);

/// Of one case, on the thread that takes its samples. A sample takes longer than usual if a time of
/// the host's clock is above kLonger times its median in the block before; of a case's first block,
/// in its first samples. Where no metric is of the host's clock, nothing is looked at.
class ThreadWatch {
 public:
  static constexpr double kLonger = 1.2;
  /// A sample comes after a pause if it begins so long after the end of the one before it.
  static constexpr std::int64_t kPauseNs = 20'000;

  using Read = std::function<ThreadCounters()>;

  explicit ThreadWatch(const std::vector<std::string_view>& metrics,
                       Read read = read_thread_counters,
                       std::function<std::int64_t()> now = now_ns);

  /// Touches the memory that it may need for the block, so that keeping a sample takes no fault.
  void begin_block(const Block& block);
  /// After a sample was kept in `block`: some 0.3 us, outside of all timing.
  void look(const Block& block);
  /// Learns what is usual in the next block.
  void end_block(const Block& block);

  /// Of the block that ended last.
  const std::vector<WatchedSample>& slow() const { return slow_; }
  const ThreadEvents& usual() const { return usual_; }

 private:
  static constexpr std::size_t kLearnedFrom = 32;  // samples of a case's first block

  bool is_long(const Block& block, std::size_t sample) const;
  void learn(const Block& block);
  void keep(const Block& block, WatchedSample watched);
  ThreadEvents events_since_the_last_look();

  std::vector<std::size_t> watched_;  // places of the metrics
  std::vector<double> limits_;        // of each, once they are known
  std::vector<WatchedSample> slow_, unjudged_;
  ThreadEvents usual_;
  Read read_;
  std::function<std::int64_t()> now_;
  ThreadCounters last_;
  std::int64_t last_ended_ns_ = 0;
};

}  // namespace launchgap
