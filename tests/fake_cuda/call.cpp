#include "tests/fake_cuda/call.h"

namespace launchgap::fake {

void spin_until(double deadline_ns) {
  while (now_ns() < deadline_ns) {
  }
}

abi::Result Call::return_at(double end_ns, abi::Result result) {
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
