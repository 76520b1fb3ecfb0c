#include "tests/fake_cuda/faults.h"

namespace launchgap::fake {

Faults::Faults(std::vector<FaultDescription> faults) {
  for (auto& fault : faults) faults_.push_back({std::move(fault), {}});
}

const FaultDescription* Faults::next_call(Library library, std::string_view call, int device) {
  const FaultDescription* acting = nullptr;
  for (auto& [fault, calls] : faults_) {
    if (fault.callee != library || fault.call != call || (fault.device && *fault.device != device))
      continue;
    const long long past = ++calls[device] - fault.after;
    if (past > 0 && (!fault.times || past <= *fault.times) && acting == nullptr) acting = &fault;
  }
  return acting;
}

bool is_sticky(int code) {
  switch (code) {
    case 214:
    case 220:
    case 700:
    case 702:
    case 709:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
      return true;
    default:
      return false;
  }
}

}  // namespace launchgap::fake
