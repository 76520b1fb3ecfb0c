#include "kernels/echo.h"

#include <atomic>
#include <chrono>

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned*),
                                       sizeof(unsigned*),
                                       sizeof(unsigned),
                                       sizeof(unsigned long long)};

void answer(void* const* arguments, LaunchShape) {
  const std::atomic_ref<unsigned> ping(**static_cast<unsigned* const*>(arguments[0]));
  std::atomic_ref<unsigned> pong(**static_cast<unsigned* const*>(arguments[1]));
  const unsigned rounds = *static_cast<const unsigned*>(arguments[2]);
  const auto timeout =
      std::chrono::nanoseconds(*static_cast<const unsigned long long*>(arguments[3]));
  for (unsigned round = 1; round <= rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    while (ping.load(std::memory_order_acquire) != round) {
      if (std::chrono::steady_clock::now() - begin > timeout) return;
    }
    pong.store(round, std::memory_order_release);
  }
}

}  // namespace

const KernelDescription echo_kernel{"launchgap_echo", kParameters, answer};

}  // namespace launchgap::kernels
