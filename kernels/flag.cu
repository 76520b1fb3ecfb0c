// Writes a value to host memory: the earliest sign of a kernel that the host can see without asking
// the driver. Parameters: volatile unsigned* flag (in mapped host memory), unsigned value.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_flag(volatile unsigned* flag, unsigned value) {
  *flag = value;
}

#else

#include <atomic>

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned*), sizeof(unsigned)};

void raise(void* const* arguments, LaunchShape) {
  std::atomic_ref<unsigned> flag(**static_cast<unsigned* const*>(arguments[0]));
  flag.store(*static_cast<const unsigned*>(arguments[1]), std::memory_order_release);
}

}  // namespace

const KernelDescription flag_kernel{"launchgap_flag", kParameters, raise};

}  // namespace launchgap::kernels

#endif
