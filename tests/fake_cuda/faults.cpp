#include "tests/fake_cuda/faults.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "harness/core/errors.h"

namespace launchgap::fake {

Faults::Faults(std::vector<FaultDescription> faults) {
  for (auto& fault : faults) faults_.push_back({std::move(fault), {}});
}

const FaultDescription* Faults::next_call(Library library, std::string_view call, int device) {
  const FaultDescription* acting = nullptr;
  for (auto& [fault, calls] : faults_) {
    if (fault.callee != library || fault.call != call ||
        (fault.device && fault.device->index != device))
      continue;
    const long long past = ++calls[device] - fault.after;
    if (past > 0 && (!fault.times || past <= *fault.times) && acting == nullptr) acting = &fault;
  }
  return acting;
}

const Node* LoadedNode::get() {
  if (!std::exchange(attempted_, true)) {
    try {
      faults_.emplace(node_.emplace(load_node()).faults);
    } catch (const Error& error) {
      std::fprintf(stderr, "launchgap fake node: %s\n", error.what());
    }
  }
  return node_ ? &*node_ : nullptr;
}

bool is_sticky(int code) {
  static constexpr int kSticky[] = {214, 220, 700, 702, 709, 710};
  return std::ranges::find(kSticky, code) != std::end(kSticky) || (code >= 714 && code <= 719);
}

}  // namespace launchgap::fake
