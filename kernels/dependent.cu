#include "device.h"

#if !defined(__clang__)
extern "C" __global__ void launchgap_dependent(unsigned long long nanoseconds, unsigned* counter) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  wait_ns(nanoseconds);
  *static_cast<volatile unsigned*>(counter) += 1;
}
#endif
