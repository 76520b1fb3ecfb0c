// Takes arguments of a given size in bytes, to see what copying them costs a launch.
// Parameter: one structure of so many bytes that begins with an unsigned* and ends with an
// unsigned: where the pointer is not null, the kernel stores the number there.
#ifdef LAUNCHGAP_DEVICE_CODE

#include "device.h"

// Beyond 4 KiB PTX 8.1 is needed, which the portable form does not have, and compute
// capability 7.0: nvcc builds for older ones too.
#if LAUNCHGAP_ARGUMENT_BYTES <= 4096 || \
    (!defined(__clang__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700))

struct Arguments {
  unsigned* to;
  unsigned words[(LAUNCHGAP_ARGUMENT_BYTES - 8) / 4];
};

extern "C" __global__ void LAUNCHGAP_KERNEL(const Arguments arguments) {
  if (arguments.to) *arguments.to = arguments.words[(LAUNCHGAP_ARGUMENT_BYTES - 8) / 4 - 1];
}

#endif

#else

#include <algorithm>
#include <cstring>

#include "kernels/kernels.h"

namespace launchgap::kernels {
namespace {

template <std::size_t bytes>
void store(void* const* arguments, LaunchShape) {
  const auto* const begin = static_cast<const char*>(arguments[0]);
  unsigned* to = nullptr;
  std::memcpy(&to, begin, sizeof to);
  if (to) std::memcpy(to, begin + bytes - sizeof(unsigned), sizeof(unsigned));
}

template <std::size_t bytes>
constexpr std::size_t kParameters[] = {bytes};

// Twice the same list: sizes, and kernels in the same order.
constexpr std::size_t kSizes[] = {16, 256, 1024, 4096, 32760};
const KernelDescription kKernels[] = {
    {"launchgap_arguments_16", kParameters<16>, store<16>},
    {"launchgap_arguments_256", kParameters<256>, store<256>},
    {"launchgap_arguments_1024", kParameters<1024>, store<1024>},
    {"launchgap_arguments_4096", kParameters<4096>, store<4096>},
    {"launchgap_arguments_32760", kParameters<32760>, store<32760>, 70},
};
static_assert(std::size(kSizes) == std::size(kKernels));

}  // namespace

std::span<const std::size_t> argument_sizes() {
  return kSizes;
}

const KernelDescription* arguments_kernel(std::size_t bytes) {
  const auto found = std::ranges::find(kSizes, bytes);
  return found == std::end(kSizes) ? nullptr : &kKernels[found - std::begin(kSizes)];
}

}  // namespace launchgap::kernels

#endif
