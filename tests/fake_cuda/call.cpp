#include "tests/fake_cuda/call.h"

#include "tests/fake_cuda/process.h"

namespace launchgap::fake {

void spin_until(double deadline_ns) {
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
