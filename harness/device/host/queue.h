// A queue of work on the host: one worker thread that does tasks in order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "harness/core/cpus.h"
#include "kernels/kernel.h"

namespace launchgap::host {

/// One producer, one worker. Like a GPU's launch queue it is bounded: enqueueing into a full queue
/// waits.
class Queue {
 public:
  static constexpr std::size_t kCapacity = 1024;  // what CUDA's launch queue holds, about
  static constexpr std::size_t kMaxArgumentBytes = 96;

  /// The worker thread is bound to `cpus`. If the producer has the same CPU, both sleep while they
  /// wait: who spins there keeps the other one from working.
  Queue(const CpuList& cpus, bool shares_cpu);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Copies the arguments and returns; the worker calls the kernel's host function.
  void launch(const kernels::KernelDescription& kernel,
              kernels::LaunchShape shape,
              void* const* arguments);
  /// Work of a library or of the device itself; only what has a name is recorded as a kernel.
  void run(std::function<void()> work, const char* name = nullptr);

  /// Returns when everything enqueued so far is done; rethrows the first exception of a task since
  /// the last wait. Spins for kSpinNs, unless the CPU is shared, and then sleeps, so that it does
  /// not take a core away from a long library call.
  void wait();

 private:
  static constexpr std::int64_t kSpinNs = 50'000;
  static constexpr std::int64_t kIdleSpinNs = 2'000'000;
  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

  struct Task {
    const kernels::KernelDescription* kernel = nullptr;  // null: `work`
    kernels::LaunchShape shape;
    alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments;
    std::function<void()> work;
    const char* name = nullptr;
    std::uint32_t correlation = 0;  // where it is recorded
  };

  Task& next_slot();
  void publish();
  void publish_recorded(Task& task, const char* name, std::int64_t begin_ns);
  void execute(Task& task);
  void serve(const CpuList& cpus);
  std::int64_t spin_ns(std::int64_t ns) const { return shares_cpu_ ? 0 : ns; }

  const bool shares_cpu_;
  std::unique_ptr<std::array<Task, kCapacity>> tasks_ =
      std::make_unique<std::array<Task, kCapacity>>();
  std::uint32_t submitted_local_ = 0;  // the producer's copy
  std::uint32_t completed_local_ = 0;  // what the producer last read: it reads again only when full
  std::exception_ptr failure_;         // written by the worker before `completed_`, read after it
  // How many tasks, modulo 2^32. Of 32 bits, since one can sleep on these as they are: to wake up
  // who sleeps on a wider atomic, libstdc++ counts in a place that both threads then write for each
  // task, a third of what a launch took. Written with sequential consistency: whoever is about to
  // sleep must see the task, or be seen.
  alignas(64) std::atomic<std::uint32_t> submitted_{0};
  alignas(64) std::atomic<std::uint32_t> completed_{0};
  std::atomic<bool> stopping_{false};
  std::thread worker_;
};

}  // namespace launchgap::host
