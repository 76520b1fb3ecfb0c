// One call of the driver's interface: its name, which faults know, and what a listener hears of it.
#pragma once

#include <atomic>

#include "tests/fake_cuda/driver_calls.h"
#include "tests/fake_cuda/mutex.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

class Process;
struct Context;

/// The fake CUPTI while it records; null otherwise.
inline std::atomic<Listener*> installed_listener = nullptr;

/// Sets a fake clock forward (clock.h) in place of waiting, whether the wait would spin or sleep;
/// false where time has to pass for real.
bool skip_to(double deadline_ns, bool spinning);
void sleep_until(double deadline_ns);
/// Spins, so that a call takes its time; through most of one of many milliseconds it sleeps, which
/// leaves the CPU to others.
void spin_until(double deadline_ns);

class Call {
 public:
  explicit Call(DriverCall which);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const double begin_ns = now_ns();  // CLOCK_MONOTONIC
  Process& process;
  Lock lock;  // the driver's, while the call does something

  /// The code that the description wants it to return, if any.
  abi::Result fault(Context* context);

  /// Null when nobody listens.
  Listener* listener() const { return listener_; }

  /// Unlocks, and spins until the call has taken the time that is described for it.
  abi::Result return_at(double end_ns, abi::Result result);

  /// The last word of every call; those that did not return_at() return now. Without the driver's
  /// lock.
  abi::Result returns(abi::Result result) {
    return listener_ == nullptr || returned_ ? result : return_at(now_ns(), result);
  }

 private:
  DriverCall which_;
  Listener* listener_;
  bool returned_ = false;
};

}  // namespace launchgap::fake
