// Operands for operations on the device: one set that stays in the cache, or so many that each
// operation finds its own gone from there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/device.h"
#include "kernels/element.h"

namespace launchgap {

inline constexpr const char* type_meaning =
    "of the elements; `tf32` is FP32 in memory, rounded in the tensor cores";
inline constexpr const char* cache_meaning =
    "`warm`: every operation has the same operands; `cold`: each finds its own gone from the "
    "device's last-level cache";

/// How many operand sets of `set_bytes` make the axis `cache`: one for `warm`; for `cold` as many
/// as together exceed twice the last-level cache, and at least two. Throws Unsupported where the
/// device's cache is unknown or the memory that is free does not hold them.
inline int operand_sets(Device& device, const std::string& cache, std::size_t set_bytes) {
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
    throw Unsupported(
        fmt::format("the operands need {} MiB, and {} MiB are free", needed >> 20, free >> 20));
  }
  return sets;
}

/// How long a device works before it is timed.
inline double warm_up_seconds(const Device& device) {
  return backend_of(device.facts()).warm_up_s;
}

/// The axis `type`: fp32, tf32 (FP32 in memory, rounded to TF32 in the tensor cores), fp16, bf16.
inline kernels::ElementType element_type(const std::string& type) {
  if (type == "fp32" || type == "tf32") return kernels::ElementType::fp32;
  if (type == "fp16") return kernels::ElementType::fp16;
  if (type == "bf16") return kernels::ElementType::bf16;
  throw Error("there is no type '" + type + "'");
}

}  // namespace launchgap
