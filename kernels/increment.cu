// Adds one to a counter, by one thread: proof that each launch ran once and in order, before
// launches are timed. Parameters: unsigned* counter.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_increment(unsigned* counter) {
  *counter += 1;
}

#else

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {
constexpr std::size_t kParameters[] = {sizeof(unsigned*)};
}
const KernelDescription increment_kernel{"launchgap_increment",
                                         kParameters,
                                         [](void* const* arguments, LaunchShape) {
                                           **static_cast<unsigned* const*>(arguments[0]) += 1;
                                         }};
}  // namespace launchgap::kernels

#endif
