// Work that is not measured, until a process and its device are as fast as they will be.
//
// A GPU that was idle runs at a fraction of its clock, CPUs sleep and clock down, and the first
// calls of a process find nothing in caches. Whatever is measured in that time is measured too
// slow, and by how much depends on what the process does first: a difference between processes that
// launchgap would make itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

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
  };

  void add(const Round& round) { rounds_.push_back(round); }
  bool steady() const;
  std::size_t rounds() const { return rounds_.size(); }
  const Round& last() const { return rounds_.back(); }

 private:
  std::vector<Round> rounds_;
};

/// What a warm-up came to.
struct WarmUp {
  bool steady = false;
  double seconds = 0;
  std::size_t rounds = 0;
  SteadyStart::Round last;
};

/// Launches until the process is steady, for 2 s at most. `clock_mhz` reads the device's clock
/// between rounds; `after_round` is called then as well. Nothing where the device has no kernel to
/// launch.
std::optional<WarmUp> warm_up(Device& device,
                              const std::function<std::optional<double>()>& clock_mhz,
                              const std::function<void()>& after_round);

}  // namespace launchgap
