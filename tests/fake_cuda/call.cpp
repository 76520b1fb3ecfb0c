#include "tests/fake_cuda/call.h"

#include <ctime>

#include "tests/fake_cuda/clock.h"
#include "tests/fake_cuda/process.h"

namespace launchgap::fake {

bool skip_to(double deadline_ns, bool spinning) {
  // The worker acts at times that pass for real.
  return launchgap_fake_clock_skip != nullptr && !Process::instance().worker.busy() &&
         launchgap_fake_clock_skip(deadline_ns, spinning);
}

void sleep_until(double deadline_ns) {
  if (skip_to(deadline_ns, false)) return;
  timespec until;
  until.tv_sec = static_cast<std::time_t>(deadline_ns / 1e9);
  until.tv_nsec = static_cast<long>(deadline_ns - 1e9 * static_cast<double>(until.tv_sec));
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

void spin_until(double deadline_ns) {
  if (skip_to(deadline_ns, true)) return;
  constexpr double kSpun_ns = 2e6;
  if (deadline_ns - now_ns() > 2 * kSpun_ns) sleep_until(deadline_ns - kSpun_ns);
  while (now_ns() < deadline_ns) {
  }
}

Call::Call(DriverCall which)
    : process(Process::instance()),
      which_(which),
      listener_(installed_listener.load(std::memory_order_acquire)) {
  if (listener_ != nullptr) listener_->enter(ApiDomain::driver, which_.id(), begin_ns);
}

abi::Result Call::fault(Context* context) {
  return process.fault(lock, Library::cuda, which_.name(), context);
}

abi::Result Call::return_at(double end_ns, abi::Result result) {
  if (lock.owns_lock()) lock.unlock();
  if (listener_ != nullptr) {
    end_ns = listener_->leave(end_ns, result);
    // Within the time that the call takes anyway.
    listener_->write();
  }
  returned_ = true;
  spin_until(end_ns);
  return result;
}

}  // namespace launchgap::fake
