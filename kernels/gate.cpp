#include "kernels/gate.h"

#include <atomic>
#include <chrono>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned*),
                                       sizeof(unsigned*),
                                       sizeof(unsigned long long)};

void hold(void* const* arguments, LaunchShape) {
  const std::atomic_ref<unsigned> open(**static_cast<unsigned* const*>(arguments[0]));
  std::atomic_ref<unsigned> timed_out(**static_cast<unsigned* const*>(arguments[1]));
  const auto timeout =
      std::chrono::nanoseconds(*static_cast<const unsigned long long*>(arguments[2]));
  const auto begin = std::chrono::steady_clock::now();
  while (open.load(std::memory_order_acquire) == 0) {
    if (std::chrono::steady_clock::now() - begin > timeout) {
      timed_out.store(1, std::memory_order_release);
      return;
    }
  }
}

}  // namespace

const KernelDescription gate_kernel{"launchgap_gate", kParameters, hold};

}  // namespace launchgap::kernels
