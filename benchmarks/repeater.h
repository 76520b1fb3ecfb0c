// A thread that does something beside the one that launches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "harness/device/device.h"

namespace launchgap {

/// Another thread that does something again and again while it is told to, and sleeps else.
class Repeater {
 public:
  using Work = std::function<void()>;

  /// `make` makes what it does, on that thread, which is bound to `cpu`. Throws what `make` throws.
  Repeater(Device& device, int cpu, std::function<Work()> make);
  ~Repeater();
  Repeater(const Repeater&) = delete;
  Repeater& operator=(const Repeater&) = delete;

  /// Returns when it was done once. Throws what it threw.
  void begin();
  /// Returns when it has ended. Throws likewise.
  void end();

 private:
  enum class State { resting, working, leaving };

  void serve(Device& device, int cpu, const std::function<Work()>& make);
  void repeat(const Work& work);

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::resting;
  bool ready_ = false, begun_ = false, busy_ = false;
  std::atomic<bool> wanted_{false};
  std::exception_ptr failure_;
  std::thread thread_;  // last, so that it begins when all else is there
};

}  // namespace launchgap
