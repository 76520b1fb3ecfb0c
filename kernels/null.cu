// The kernel that does nothing: what remains of its time is the launch.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

extern "C" __global__ void launchgap_null() {}

#else

#include "kernels/kernels.h"

namespace launchgap::kernels {
const KernelDescription null_kernel{"launchgap_null", {}, [](void* const*, LaunchShape) {}};
}

#endif
