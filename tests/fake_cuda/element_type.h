// Element types of matrices and tensors, their capability rules and their conversions.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "kernels/element.h"
#include "tests/fake_cuda/node.h"

namespace launchgap::fake {

/// A value as TF32 keeps it: 10 bits of mantissa, to nearest even.
inline float rounded_to_tf32(float value) {
  const unsigned bits = kernels::float_bits(value);
  return kernels::float_from_bits((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

/// What is known of a type, by its number.
struct TypeFacts {
  kernels::ElementType type;
  int first_capability;  // 80 for 8.0: from there on the libraries take it
  const char* rate;      // the key of `tflops` that counts
};
inline const TypeFacts& facts_of(kernels::ElementType type) {
  using kernels::ElementType;
  static constexpr TypeFacts kTypes[] = {{ElementType::fp32, 0, "fp32"},
                                         {ElementType::fp64, 0, "fp64"},
                                         {ElementType::fp16, 53, "fp16"},
                                         {ElementType::int8, 61, "int8"},
                                         {ElementType::int32, 61, "int8"},
                                         {ElementType::bf16, 80, "bf16"},
                                         {ElementType::fp8_e4m3, 89, "fp8"},
                                         {ElementType::fp8_e5m2, 89, "fp8"}};
  return *std::ranges::find(kTypes, type, &TypeFacts::type);
}

/// How products of a type run: the peak that they approach, and whether operands are rounded to
/// TF32.
struct Arithmetic {
  std::optional<double> tflops;
  bool tf32 = false;
};

/// The key of `tflops` that a product ran at, for the names of kernels.
inline std::string rate_name(kernels::ElementType type, const Arithmetic& how) {
  return how.tf32 ? "tf32" : facts_of(type).rate;
}

/// Sums in binary32 would lose digits that the type's have.
inline bool needs_double(kernels::ElementType type) {
  return type == kernels::ElementType::fp64 || type == kernels::ElementType::int8;
}

/// The name of a kernel, which lives as long as the process: records point to it.
inline const char* kernel_name(const std::string& name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

/// Blocks for `count` elements, `each` per block.
inline unsigned blocks_for(std::size_t count, std::size_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

inline Arithmetic arithmetic(const DeviceDescription& device,
                             kernels::ElementType type,
                             bool tf32_allowed) {
  if (type == kernels::ElementType::fp32 && tf32_allowed && device.capability() >= 80 &&
      device.peak("tf32"))
    return {device.peak("tf32"), true};
  return {device.peak(rate_name(type, {})), false};
}

inline double load_operand(const void* from,
                           std::size_t index,
                           kernels::ElementType type,
                           bool tf32) {
  const double value = kernels::load_element(from, index, type);
  return tf32 ? rounded_to_tf32(static_cast<float>(value)) : value;
}

/// Duration of `flops` operations.
inline double work_ns(double flops, double tflops) {
  return flops / (tflops * 1e3);
}

}  // namespace launchgap::fake
