// Holds a stream until the host opens the gate, so that work can be enqueued behind it and
// launching is not part of what is measured. A gate that nobody opens gives up after its time-out
// and says so: the sample is then invalid, and the device is not hung. Parameters: volatile
// unsigned* open, volatile unsigned* timed_out (both in mapped host memory), unsigned long long
// timeout_ns.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_gate(volatile unsigned* open,
                                          volatile unsigned* timed_out,
                                          unsigned long long timeout_ns) {
  const unsigned long long begin = global_timer_ns();
  while (*open == 0) {
    if (global_timer_ns() - begin > timeout_ns) {
      *timed_out = 1;
      return;
    }
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

#endif
