// One call of the driver's interface: its name, which faults know, and what a listener hears of it.
#pragma once

#include <atomic>

#include "tests/fake_cuda/driver_calls.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// The fake CUPTI while it records; null otherwise.
inline std::atomic<Listener*> installed_listener = nullptr;

/// Spins, so that a call takes its time.
void spin_until(double deadline_ns);

class Call {
 public:
  explicit Call(DriverCall which)
      : which_(which), listener_(installed_listener.load(std::memory_order_acquire)) {
    if (listener_ != nullptr) listener_->enter(ApiDomain::driver, which_.id(), begin_ns());
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const char* name() const { return which_.name(); }

  /// When the call began: CLOCK_MONOTONIC in ns.
  double begin_ns() {
    if (begin_ns_ == 0) begin_ns_ = now_ns();
    return begin_ns_;
  }

  /// Null when nobody listens.
  Listener* listener() const { return listener_; }

  /// Spins until the call has taken the time that is described for it. Without the driver's lock.
  abi::Result return_at(double end_ns, abi::Result result);

  /// The last word of every call; those that did not return_at() return now. Without the driver's
  /// lock.
  abi::Result returns(abi::Result result) {
    return listener_ == nullptr || returned_ ? result : return_at(now_ns(), result);
  }

 private:
  DriverCall which_;
  Listener* listener_;
  double begin_ns_ = 0;
  bool returned_ = false;
};

}  // namespace launchgap::fake
