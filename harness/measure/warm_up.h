// Work that is not measured, until a process and its device are as fast as they will be.
//
// A GPU that was idle runs at a fraction of its clock, CPUs sleep and clock down, and the first
// calls of a process find nothing in caches. Whatever is measured in that time is measured too
// slow, and by how much depends on what the process does first: a difference between processes that
// launchgap would make itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/block.h"
#include "harness/device/device.h"

namespace launchgap {

/// When a process is steady: after ten rounds or more, each of 20 ms of empty launches that are
/// waited for, the last five and the five before them differ by at most 1 % (or 5 ns, where that is
/// more) in the means of the lower quartiles of call and of round trip, and of the last five none
/// is more than 5 % (or 10 ns) above another, nor the device's clock 2 %. Two groups, since a slow
/// rise shows between them and not between neighbours; quartiles, since another process that takes
/// the CPU for a while disturbs them least.
class SteadyStart {
 public:
  static constexpr std::size_t kGroup = 5;
  static constexpr double kMostDrift = 0.01, kDriftResolutionNs = 5;
  static constexpr double kMostSpread = 0.05, kSpreadResolutionNs = 10;
  static constexpr double kMostClockSpread = 0.02;

  struct Round {
    double call_ns = 0, roundtrip_ns = 0;  // lower quartiles
    std::optional<double> clock_mhz;       // none: the device does not tell
    double seconds = 0;                    // that it took
  };

  void add(const Round& round) { rounds_.push_back(round); }
  bool steady() const;

 private:
  std::vector<Round> rounds_;
};

/// What the warm-ups of a process came to.
struct WarmUpResult {
  bool steady = false;      // when measuring began
  double seconds = 0;       // of all rounds, those before single cases included
  std::size_t rounds = 0;   // of all
  SteadyStart::Round last;  // by which a device has cooled down or not
  std::size_t again = 0;    // warm-ups before single cases
};

/// Warms a process and its device up, and again when they have cooled down: while a library was
/// loaded or a result was computed on the host, the device had nothing to do.
class WarmUp {
 public:
  /// The most that rounds take before the first case, and before a later one that finds the device
  /// cooled down.
  static constexpr double kFirstSeconds = 2, kAgainSeconds = 0.5;
  /// A round that is slower than the steady ones by more than this, twice, asks for another
  /// warm-up.
  static constexpr double kMostCooling = 0.05;

  /// A round of launches, for so many nanoseconds or a little longer.
  using LaunchFor = std::function<SteadyStart::Round(std::int64_t nanoseconds)>;

  /// `clock_mhz` reads the device's clock after each round; looks do without.
  explicit WarmUp(LaunchFor launch_for, std::function<std::optional<double>()> clock_mhz = {})
      : launch_for_(std::move(launch_for)), clock_mhz_(std::move(clock_mhz)) {}

  /// Launches until the process is steady or the time is up.
  void warm_up();
  /// Before a case: looks for 2 ms whether the device is as fast as it was, and warms it up if not.
  /// False: in time it became neither steady nor as fast as it was, and the next case looks again.
  /// A process that was never steady has nothing to look for: true.
  bool keep();
  const WarmUpResult& result() const { return result_; }

 private:
  bool launch_until_steady(double most_seconds);
  bool is_slower(const SteadyStart::Round& round) const;
  bool cooled_down();

  LaunchFor launch_for_;
  std::function<std::optional<double>()> clock_mhz_;
  WarmUpResult result_;
  SteadyStart::Round latest_;
};

/// Rounds of an empty kernel that is waited for; `after_round` is called after each. Throws
/// Unsupported where the device has no kernel to launch.
WarmUp::LaunchFor empty_launches(Device& device, std::function<void()> after_round);

// --- When a case has been measured well enough to stop ---

// Never because it looks good so far, only because more blocks could hardly move its medians.

/// The rule: for every metric, the nonparametric 95 % interval of the median of the medians of the
/// blocks so far is at most 1 % of that median wide, and there are six blocks or more, below which
/// there is no such interval. It judges how well this process knows its own median. How far
/// processes are apart it cannot know, so it never makes fewer processes.
class SteadyRule {
 public:
  static constexpr double kWidth = 0.01;

  void add(const Block& block);
  bool steady() const;

 private:
  std::map<std::string_view, std::vector<double>> medians_;  // of the blocks, by metric
};

}  // namespace launchgap
