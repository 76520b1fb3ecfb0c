#include "kernels/spin.h"

#include <atomic>
#include <chrono>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned long long), sizeof(unsigned*)};

void spin(void* const* arguments, LaunchShape) {
  const auto length =
      std::chrono::nanoseconds(*static_cast<const unsigned long long*>(arguments[0]));
  unsigned* const counter = *static_cast<unsigned* const*>(arguments[1]);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < length) {
  }
  if (counter) std::atomic_ref<unsigned>(*counter).fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace

const KernelDescription spin_kernel{"launchgap_spin", kParameters, spin};

}  // namespace launchgap::kernels
