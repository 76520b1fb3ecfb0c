// A kernel that can overlap with its neighbours in the stream (programmatic dependent launch,
// compute capability 9.0 and later): it lets the next one be launched at once, and begins its work
// when the one before has ended. What such launches save is what lies between two kernels.
// Parameters: unsigned long long nanoseconds, unsigned* counter, to which the kernel adds one at
// its end, without an atomic: proof that their work is in order.
#ifdef LAUNCHGAP_DEVICE_CODE

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

#else

#include <chrono>

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

constexpr std::size_t kParameters[] = {sizeof(unsigned long long), sizeof(unsigned*)};

void work(void* const* arguments, LaunchShape) {
  const auto length =
      std::chrono::nanoseconds(*static_cast<const unsigned long long*>(arguments[0]));
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < length) {
  }
  **static_cast<unsigned* const*>(arguments[1]) += 1;
}

}  // namespace

const KernelDescription dependent_kernel{"launchgap_dependent", kParameters, work, 90};

}  // namespace launchgap::kernels

#endif
