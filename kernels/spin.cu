// Keeps the device busy for a time, and counts: work of a known length, and proof that it was done.
// Parameters: unsigned long long nanoseconds, unsigned* counter (may be null). Each block lasts
// that long; the counter, which may be shared with the host, is incremented once per launch, at the
// end of block 0, so only a launch of one block says by it that it is over. The increment has the
// device's scope, since sm_35 has no other: a host that polls the counter sees it in practice, and
// no memory model promises that.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_spin(unsigned long long nanoseconds, unsigned* counter) {
  wait_ns(nanoseconds);
  if (counter && global_thread() == 0) atomic_increment(counter);
}

#else

#include <atomic>
#include <chrono>

#include "kernels/kernels.h"

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

#endif
