#include "harness/measure/fill.h"

#include <algorithm>
#include <memory>

#include "kernels/kernels.h"

namespace launchgap {

void fill(Device& device,
          Stream& stream,
          const Buffer& buffer,
          std::uint64_t seed,
          kernels::ElementType type,
          kernels::Distribution distribution,
          std::uint64_t step) {
  const std::unique_ptr<Kernel> kernel = device.load(kernels::fill_kernel);
  void* out = buffer.address();
  unsigned long long count = buffer.bytes() / kernels::element_bytes(type);
  unsigned long long kernel_seed = seed, kernel_step = step;
  int type_code = static_cast<int>(type);
  int distribution_code = static_cast<int>(distribution);
  void* arguments[] = {&out, &count, &kernel_seed, &type_code, &distribution_code, &kernel_step};
  const auto blocks =
      static_cast<unsigned>(std::clamp<unsigned long long>((count + 255) / 256, 1, 4096));
  stream.launch(*kernel, {blocks, 256}, arguments);
  stream.wait();
}

}  // namespace launchgap
