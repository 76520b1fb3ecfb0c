// The driver's lock.
#pragma once

#include <mutex>

namespace launchgap::fake {

/// A mutex whose lock() tries for a while before it sleeps: what it protects is short, and waking
/// up would take longer than all that a call is described to take.
class Mutex {
 public:
  void lock() {
    constexpr int kTries = 2000;  // some 20 us
    for (int i = 0; i < kTries; ++i) {
      if (mutex_.try_lock()) return;
    }
    mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

using Lock = std::unique_lock<Mutex>;

}  // namespace launchgap::fake
