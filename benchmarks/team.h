// Several threads that do something at the same time.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/device/device.h"

namespace launchgap {

/// Threads that all do the same at the same time, each on a CPU of its own. They spin for their
/// start: waking them would be timed too.
class Team {
 public:
  /// `work(i)` is what member i does; member 0 is the calling thread. There must be a CPU for each
  /// (need_cpus of launching.h). `release` frees the members that wait for one that failed; that
  /// one's thread calls it.
  Team(
      Device& device,
      int members,
      std::function<void(int)> work,
      std::function<void()> release = [] {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Returns when every member has done its work or failed; rethrows what was thrown first: what
  /// others throw later may only follow from it.
  void run();

 private:
  void serve(Device& device, int member);
  void attempt(int member);
  void fail(const std::exception_ptr& failure);

  std::function<void(int)> work_;
  std::function<void()> release_;
  std::mutex mutex_;
  std::exception_ptr first_failure_;  // guarded by mutex_ during a round
  std::atomic<unsigned> round_{0};
  std::atomic<int> ended_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

/// Where other threads than the one on `own` launch: a core for each, and near the device, before
/// hardware threads share one and before any is far. Whether launching from several threads pays
/// must not depend on how the machine numbers its CPUs.
CpuList cpus_for_others(const Device& device, const CpuList& own);

}  // namespace launchgap
