// Answers the host: waits for ping to become 1, 2, … rounds, and writes each to pong. How long a
// flag takes to the device and back, without a launch. A host that falls silent for longer than the
// time-out ends it. Parameters: volatile unsigned* ping, volatile unsigned* pong (both in mapped
// host memory), unsigned rounds, unsigned long long timeout_ns.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_echo(volatile unsigned* ping,
                                          volatile unsigned* pong,
                                          unsigned rounds,
                                          unsigned long long timeout_ns) {
  for (unsigned round = 1; round <= rounds; ++round) {
    const unsigned long long begin = global_timer_ns();
    while (*ping != round) {
      if (global_timer_ns() - begin > timeout_ns) return;
    }
    *pong = round;
  }
}

#else

#include <atomic>
#include <chrono>

#include "kernels/kernels.h"

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

#endif
