// Matrix and tensor elements as a function of (seed, index), so that the device fills gigabytes in
// place and the host can recompute any single element when it verifies a result.
#pragma once

#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDA__)
#define LAUNCHGAP_HOST_DEVICE __attribute__((host)) __attribute__((device))
#else
#define LAUNCHGAP_HOST_DEVICE
#endif

namespace launchgap::kernels {

enum class ElementType : int { fp32 = 0, fp16 = 1, bf16 = 2 };

enum class Distribution : int {
  small_integer =
      0,  // {-2, -1, 0, 1, 2}: products and sums stay exact, so results can be compared bit by bit
  uniform = 1,  // (-1, 1) with 24 random bits: what is timed (zeros would flatter: they save power)
};

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014) as a counter-based generator.
LAUNCHGAP_HOST_DEVICE inline unsigned long long element_bits(unsigned long long seed,
                                                             unsigned long long index) {
  unsigned long long z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

LAUNCHGAP_HOST_DEVICE inline float element(unsigned long long seed,
                                           unsigned long long index,
                                           Distribution distribution) {
  const unsigned long long bits = element_bits(seed, index);
  if (distribution == Distribution::small_integer) {
    return static_cast<float>(static_cast<int>(((bits >> 32) * 5) >> 32) - 2);
  }
  // Odd multiples of 2^-24 in (-1, 1): never zero, and exact in binary32.
  return static_cast<float>(2 * static_cast<int>(bits >> 40) + 1 - (1 << 24)) * 0x1p-24f;
}

/// The same where only each `step`-th element is not zero, for sums that stay exact in 16 bits: of
/// the small integers without 0. With 1 it is `element`. Where `step` and the length of a row have
/// no common divisor, the rows take turns over all columns, and each has as many, give or take one.
LAUNCHGAP_HOST_DEVICE inline float sparse_element(unsigned long long seed,
                                                  unsigned long long index,
                                                  Distribution distribution,
                                                  unsigned long long step) {
  if (step <= 1) return element(seed, index, distribution);
  if (index % step != 0) return 0;
  const unsigned long long bits = element_bits(seed, index);
  const float magnitude = bits >> 63 ? 2 : 1;
  return bits >> 62 & 1 ? -magnitude : magnitude;
}

LAUNCHGAP_HOST_DEVICE inline unsigned float_bits(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

LAUNCHGAP_HOST_DEVICE inline float float_from_bits(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// binary32 to bfloat16, to nearest even. For finite values.
LAUNCHGAP_HOST_DEVICE inline unsigned short to_bf16(float value) {
  const unsigned bits = float_bits(value);
  return static_cast<unsigned short>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

LAUNCHGAP_HOST_DEVICE inline float from_bf16(unsigned short half) {
  return float_from_bits(static_cast<unsigned>(half) << 16);
}

/// binary32 to IEEE binary16, to nearest even, subnormals included. For finite values; overflow
/// gives infinity.
LAUNCHGAP_HOST_DEVICE inline unsigned short to_fp16(float value) {
  const unsigned bits = float_bits(value);
  const unsigned sign = (bits >> 16) & 0x8000u;
  const unsigned magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x477FF000u) return static_cast<unsigned short>(sign | 0x7C00u);
  if (magnitude <
      0x38800000u) {  // below 2^-14: adding 0.5 lets the adder round to multiples of 2^-24
    const float shifted = float_from_bits(magnitude) + 0.5f;
    return static_cast<unsigned short>(sign | (float_bits(shifted) - 0x3F000000u));
  }
  return static_cast<unsigned short>(
      sign | ((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13));
}

LAUNCHGAP_HOST_DEVICE inline float from_fp16(unsigned short half) {
  const unsigned sign = static_cast<unsigned>(half & 0x8000u) << 16;
  const unsigned magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u)
    return float_from_bits(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return float_from_bits(sign | ((magnitude << 13) + 0x38000000u));
}

LAUNCHGAP_HOST_DEVICE inline void store_element(void* out,
                                                unsigned long long index,
                                                ElementType type,
                                                float value) {
  switch (type) {
    case ElementType::fp32:
      static_cast<float*>(out)[index] = value;
      break;
    case ElementType::fp16:
      static_cast<unsigned short*>(out)[index] = to_fp16(value);
      break;
    case ElementType::bf16:
      static_cast<unsigned short*>(out)[index] = to_bf16(value);
      break;
  }
}

inline float load_element(const void* in, unsigned long long index, ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return static_cast<const float*>(in)[index];
    case ElementType::fp16:
      return from_fp16(static_cast<const unsigned short*>(in)[index]);
    case ElementType::bf16:
      return from_bf16(static_cast<const unsigned short*>(in)[index]);
  }
  return 0;
}

inline unsigned long long element_bytes(ElementType type) {
  return type == ElementType::fp32 ? 4 : 2;
}

/// `value` as `type` stores it.
inline float rounded_to(ElementType type, float value) {
  switch (type) {
    case ElementType::fp32:
      return value;
    case ElementType::fp16:
      return from_fp16(to_fp16(value));
    case ElementType::bf16:
      return from_bf16(to_bf16(value));
  }
  return value;
}

}  // namespace launchgap::kernels
