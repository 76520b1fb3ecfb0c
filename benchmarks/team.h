// Several threads that do something at the same time.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "harness/device/device.h"

namespace launchgap {

/// Threads that all do the same at the same time, each on a CPU of its own. They spin for their
/// start: waking them would be timed too.
class Team {
 public:
  /// `work(i)` is what member i does; member 0 is the calling thread. There must be a CPU for each
  /// (need_cpus of launching.h).
  Team(Device& device, int members, std::function<void(int)> work);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Returns when every member has done its work; rethrows what the first of them threw.
  void run();

 private:
  void serve(Device& device, int member);
  void attempt(int member);

  std::function<void(int)> work_;
  std::vector<std::exception_ptr> failures_;
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
