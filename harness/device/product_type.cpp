#include "harness/device/product_type.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

using E = ElementType;

constexpr ProductType kProductTypes[] = {
    {"fp64", E::fp64, E::fp64, E::fp64, Compute::fp64, "FP64"},
    {"fp32_pedantic",
     E::fp32,
     E::fp32,
     E::fp32,
     Compute::fp32_pedantic,
     "FP32 in which the library may take no short cut"},
    kFp32,
    {"tf32",
     E::fp32,
     E::fp32,
     E::fp32,
     Compute::tf32,
     "FP32 in memory, rounded to TF32 in the tensor cores"},
    {"fp16", E::fp16, E::fp16, E::fp16, Compute::fp32, "FP16, summed in FP32"},
    {"fp16_acc16", E::fp16, E::fp16, E::fp16, Compute::fp16, "FP16, summed in FP16"},
    {"bf16", E::bf16, E::bf16, E::bf16, Compute::fp32, "BF16, summed in FP32"},
    {"int8", E::int8, E::int8, E::int32, Compute::int32, "INT8, with a result in INT32"},
    {"fp8_e4m3",
     E::fp8_e4m3,
     E::fp8_e4m3,
     E::bf16,
     Compute::fp32,
     "FP8 of 3 bits of mantissa, with a result in BF16"},
    {"fp8_e5m2",
     E::fp8_e5m2,
     E::fp8_e4m3,
     E::bf16,
     Compute::fp32,
     "FP8 of which A has 2 bits of mantissa, with a result in BF16"},
};

}  // namespace

const ProductType& product_type(std::string_view name) {
  const auto found = std::ranges::find(kProductTypes, name, &ProductType::name);
  if (found == std::end(kProductTypes)) throw Error(fmt::format("there is no type '{}'", name));
  return *found;
}

std::span<const ProductType> product_types() {
  return kProductTypes;
}

}  // namespace launchgap
