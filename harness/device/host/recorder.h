// The host device's own tracing: while a recorder is installed, queue and allocators write down
// what was asked of them and what they did.
#pragma once

#include <atomic>
#include <mutex>

#include "harness/device/activity.h"

namespace launchgap::host {

/// Ids of the host's calls, for Domain::host.
enum CallId : std::uint32_t { kQueueLaunch = 1, kAllocate = 2, kRelease = 3 };

/// Records of one process. Calls come from the launching threads, kernels from the queues' workers.
class Recorder {
 public:
  struct Kinds {
    bool kernels = true;
    bool everything = true;  // waits and memory as well
  };

  explicit Recorder(Kinds kinds);

  const Kinds& kinds() const { return kinds_; }
  /// Never 0, which means none.
  std::uint32_t next_correlation() {
    const std::uint32_t number = correlation_.fetch_add(1, std::memory_order_relaxed);
    return number != 0 ? number : next_correlation();
  }
  void call(const activity::Call& call) { calls_.add(call); }
  void kernel(std::int64_t begin_ns,
              std::int64_t end_ns,
              std::uint32_t correlation,
              const char* name,
              std::int32_t blocks,
              std::int32_t threads);
  void wait(const activity::Wait& wait) { waits_.add(wait); }
  void allocation(activity::Purpose purpose,
                  std::int64_t begin_ns,
                  std::int64_t end_ns,
                  const void* address,
                  std::size_t bytes);

  /// Moves what was recorded so far behind what `trace` has.
  void take(activity::Trace& trace);

 private:
  struct NamedKernel {
    activity::KernelRun kernel;
    const char* name;
  };

  /// Records of one sort, with a lock of their own: a queue's two ends must not wait for each
  /// other.
  template <class Record>
  struct Channel {
    alignas(64) std::mutex mutex;
    std::vector<Record> records;

    void add(const Record& record) {
      const std::lock_guard lock(mutex);
      records.push_back(record);
    }
  };

  Kinds kinds_;
  std::atomic<std::uint32_t> correlation_{1};
  Channel<activity::Call> calls_;
  Channel<NamedKernel> kernels_;
  Channel<activity::Wait> waits_;
  Channel<activity::Memory> memory_;
};

/// The recorder of this process, null in a plain run. Installed before any device is opened and
/// never taken away.
inline Recorder* recorder = nullptr;

}  // namespace launchgap::host
