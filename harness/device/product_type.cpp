#include "harness/device/product_type.h"

#include <algorithm>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

using E = ElementType;

constexpr ProductType kProductTypes[] = {
    {"fp64", E::fp64, E::fp64, E::fp64, Compute::fp64},
    {"fp32_pedantic", E::fp32, E::fp32, E::fp32, Compute::fp32_pedantic},
    kFp32,
    {"tf32", E::fp32, E::fp32, E::fp32, Compute::tf32},
    {"fp16", E::fp16, E::fp16, E::fp16, Compute::fp32},
    {"fp16_acc16", E::fp16, E::fp16, E::fp16, Compute::fp16},
    {"bf16", E::bf16, E::bf16, E::bf16, Compute::fp32},
    {"int8", E::int8, E::int8, E::int32, Compute::int32},
    {"fp8_e4m3", E::fp8_e4m3, E::fp8_e4m3, E::bf16, Compute::fp32},
    {"fp8_e5m2", E::fp8_e5m2, E::fp8_e4m3, E::bf16, Compute::fp32},
    {"fp8_e4m3_fast", E::fp8_e4m3, E::fp8_e4m3, E::bf16, Compute::fp32, true},
    {"fp8_e5m2_fast", E::fp8_e5m2, E::fp8_e4m3, E::bf16, Compute::fp32, true},
};

}  // namespace

const ProductType& product_type(std::string_view name) {
  const auto found = std::ranges::find(kProductTypes, name, &ProductType::name);
  if (found == std::end(kProductTypes)) throw Error("there is no type '{}'", name);
  return *found;
}

}  // namespace launchgap
