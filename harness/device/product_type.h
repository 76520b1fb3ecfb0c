// What products are made of and how they are summed: the values of the axis `type`.
#pragma once

#include <string_view>

#include "kernels/element.h"

namespace launchgap {

using kernels::ElementType;

/// In which arithmetic products are multiplied and summed; alpha and beta have its type.
enum class Compute {
  fp64,
  fp32,           // the library may split operands, but loses no digit that FP32 has
  fp32_pedantic,  // nor may it do anything else than FP32 products and sums
  tf32,           // FP32 operands may be rounded to 10 bits of mantissa
  fp16,
  int32,
};

struct ProductType {
  std::string_view name;
  ElementType a = ElementType::fp32, b = ElementType::fp32;  // in memory
  ElementType c = ElementType::fp32;                         // of the result
  Compute compute = Compute::fp32;
  bool fast_accumulation = false;  // sums of FP8 may have fewer digits than FP32

  bool operator==(const ProductType& other) const { return name == other.name; }
  bool is_fp8() const { return a == ElementType::fp8_e4m3 || a == ElementType::fp8_e5m2; }
};

inline constexpr ProductType kFp32{"fp32",
                                   ElementType::fp32,
                                   ElementType::fp32,
                                   ElementType::fp32,
                                   Compute::fp32};

/// Throws Error for a name that none has.
const ProductType& product_type(std::string_view name);

/// Of the axis `type`.
inline constexpr const char* product_type_meaning =
    "of the elements, and in which products are summed (docs/shapes.md)";

}  // namespace launchgap
