// Operands for operations on the device: one set that stays in the cache, or so many that each
// operation finds its own gone from there.
#pragma once

#include <cstddef>
#include <string>

#include "harness/device/backend.h"
#include "harness/device/device.h"
#include "harness/device/product_type.h"

namespace launchgap {

inline constexpr const char* cache_meaning =
    "`warm`: every operation has the same operands; `cold`: each finds its own gone from the "
    "device's last-level cache";

/// How many operand sets of `set_bytes` make the axis `cache`: one for `warm`; for `cold` as many
/// as together exceed twice the last-level cache, and at least two. Throws Unsupported where the
/// device's cache is unknown, and TooLarge where the memory that is free does not hold them.
int operand_sets(Device& device, const std::string& cache, std::size_t set_bytes);

/// How long a device works before it is timed.
double warm_up_seconds(const Device& device);

/// What a product of so many operations takes on a device, for estimates.
double expected_product_seconds(const DeviceFacts& facts,
                                const ProductType& type,
                                double operations,
                                double bytes,
                                bool convolution);

}  // namespace launchgap
