// The one thread of the fake driver: it executes the kernels whose writes a host sees that polls
// mapped memory and never calls the driver.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>

#include "tests/fake_cuda/mutex.h"
#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

/// Executes the thread_work of entries at their virtual begin or end, one after another. The thread
/// starts with the first of them and never ends.
class Worker {
 public:
  /// `mutex` is the driver's lock.
  explicit Worker(Mutex& mutex) : mutex_(mutex) {}

  /// With the lock held; `item` is in its timeline.
  void add(ItemPointer item);

  /// Whether there is anything that a wait might have to wait for.
  bool busy() const { return unfinished_.load(std::memory_order_acquire) > 0; }

  /// How often anything was finished so far.
  unsigned finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  void start();
  void run();
  void wait_for_work(Lock& lock);
  /// Until done(); false when another thread had the processor meanwhile.
  template <typename Done>
  bool stay_awake(double until_ns, Done done);
  bool sharing() const { return now_ns() < shares_until_ns_; }
  /// The pending entry whose turn comes first and when, as far as any is known.
  ItemPointer find_next(double now_ns, double& turn_ns);
  void execute(Lock& lock, const Item& item);
  void finish(ThreadWork& work);
  void forget_executed();

  Mutex& mutex_;
  std::condition_variable_any changed_;
  std::map<const Timeline*, std::deque<ItemPointer>> pending_;  // in the order of the stream
  bool started_ = false;
  // Of the thread alone: for how long, and until when, it takes it that it shares its processor.
  double sharing_ns_ = 0;
  double shares_until_ns_ = 0;
  std::atomic<int> host_processor_ = -1;  // on which something was added last
  std::atomic<unsigned> added_ = 0;
  std::atomic<unsigned> finished_ = 0;
  std::atomic<unsigned> unfinished_ = 0;
};

}  // namespace launchgap::fake
