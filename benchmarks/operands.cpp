#include "benchmarks/operands.h"

#include <algorithm>
#include <cstdint>

#include "harness/core/errors.h"
#include "harness/core/text.h"

namespace launchgap {

int operand_sets(Device& device, const std::string& cache, std::size_t set_bytes) {
  int sets = 1;
  if (cache == "cold") {
    const std::optional<std::uint64_t> cache_bytes = device.facts().last_level_cache_bytes;
    if (!cache_bytes) throw Unsupported("the size of this device's last-level cache is unknown");
    sets = static_cast<int>(
        std::max<std::uint64_t>(2, (2 * *cache_bytes + set_bytes - 1) / set_bytes));
  }
  const std::uint64_t needed = static_cast<std::uint64_t>(sets) * set_bytes;
  const std::uint64_t free = device.free_memory_bytes();
  if (needed > free / 10 * 9) {
    throw TooLarge("the operands need {} ({} bytes), and {} ({} bytes) are free",
                   bytes_text(static_cast<double>(needed)),
                   needed,
                   bytes_text(static_cast<double>(free)),
                   free);
  }
  return sets;
}

double warm_up_seconds(const Device& device) {
  return backend_of(device.facts()).warm_up_s;
}

double expected_product_seconds(const DeviceFacts& facts,
                                const ProductType& type,
                                double operations,
                                double bytes,
                                bool convolution) {
  // Of FP32 on the vector units; what tensor cores take is several times as fast.
  const bool narrow = type.a != ElementType::fp32 && type.a != ElementType::fp64;
  const double flops =
      (convolution ? expected_convolution_flops(facts) : expected_matmul_flops(facts)) *
      (is_gpu(facts) && narrow ? 5 : 1);
  // Of a CPU's memory; a GPU's is so fast that it is no part of an estimate.
  const double bandwidth = is_gpu(facts) ? 2e11 : 5e9;
  return std::max(operations / flops, bytes / bandwidth);
}

}  // namespace launchgap
