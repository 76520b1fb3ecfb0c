// Matrix and tensor elements as a function of (seed, index), so that the device fills gigabytes in
// place and the host can recompute any single element when it verifies a result.
#pragma once

#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDA__)
#define LAUNCHGAP_HOST_DEVICE __attribute__((host)) __attribute__((device))
#else
#define LAUNCHGAP_HOST_DEVICE
#endif

namespace launchgap::kernels {

enum class ElementType : int {
  fp32 = 0,
  fp16 = 1,
  bf16 = 2,
  fp64 = 3,
  int8 = 4,
  int32 = 5,
  fp8_e4m3 = 6,  // without infinities, up to 448
  fp8_e5m2 = 7
};

enum class Distribution : int {
  small_integer =
      0,  // {-2, -1, 0, 1, 2}: products and sums stay exact, so results can be compared bit by bit
  uniform = 1,  // (-1, 1) with random bits in the whole mantissa: what is timed (zeros would
                // flatter: they save power); integers of all of the type's range
  normal = 2,   // about 0, with standard deviation 1; integers with 32
  zeros = 3,
  ones = 4
};

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014) as a counter-based generator.
LAUNCHGAP_HOST_DEVICE inline unsigned long long element_bits(unsigned long long seed,
                                                             unsigned long long index) {
  unsigned long long z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// The sum of eight variates of 16 bits is normal for all that is done with it (Irwin-Hall), and
/// the same number on every device, since it is made of integers and one multiplication.
LAUNCHGAP_HOST_DEVICE inline double normal_element(unsigned long long bits) {
  const unsigned long long more = element_bits(bits, 0);
  int sum = 0;
  for (int shift = 0; shift < 64; shift += 16) {
    sum += static_cast<int>((bits >> shift) & 0xFFFFu);
    sum += static_cast<int>((more >> shift) & 0xFFFFu);
  }
  // 8 x 65535 / 2 is the mean, and 53510 = 65536 sqrt(8 / 12) the standard deviation.
  return (sum - 262140) * (1.0 / 53510);
}

/// As the type holds it.
LAUNCHGAP_HOST_DEVICE inline double rounded_to(ElementType type, double value);

/// An element as the type holds it.
LAUNCHGAP_HOST_DEVICE inline double element(unsigned long long seed,
                                            unsigned long long index,
                                            Distribution distribution,
                                            ElementType type) {
  const unsigned long long bits = element_bits(seed, index);
  const bool is_integer = type == ElementType::int8 || type == ElementType::int32;
  switch (distribution) {
    case Distribution::small_integer:
      return static_cast<int>(((bits >> 32) * 5) >> 32) - 2;
    case Distribution::uniform:
      if (is_integer) return static_cast<int>(((bits >> 32) * 255) >> 32) - 127;
      // Odd multiples of 2^-52, or of 2^-24, in (-1, 1): never zero, and exact before rounding.
      if (type == ElementType::fp64)
        return static_cast<double>(2 * static_cast<long long>(bits >> 12) + 1 - (1ll << 52)) *
               0x1p-52;
      return rounded_to(
          type, static_cast<double>(2 * static_cast<int>(bits >> 40) + 1 - (1 << 24)) * 0x1p-24);
    case Distribution::normal:
      return rounded_to(type, is_integer ? 32 * normal_element(bits) : normal_element(bits));
    case Distribution::zeros:
      return 0;
    case Distribution::ones:
      return 1;
  }
  return 0;
}

/// The same where only each `step`-th element is not zero, for sums that stay exact in few bits: of
/// the small integers without 0. With 1 it is `element`. Where `step` and the length of a row have
/// no common divisor, the rows take turns over all columns, and each has as many, give or take one.
LAUNCHGAP_HOST_DEVICE inline double sparse_element(unsigned long long seed,
                                                   unsigned long long index,
                                                   Distribution distribution,
                                                   ElementType type,
                                                   unsigned long long step) {
  if (step <= 1) return element(seed, index, distribution, type);
  if (index % step != 0) return 0;
  const unsigned long long bits = element_bits(seed, index);
  const double magnitude = bits >> 63 ? 2 : 1;
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

/// A floating-point format of at most 16 bits, of which `kLargest` is the largest finite value.
/// What is larger becomes infinity, or the largest where conversions saturate, as those to FP8 do.
template <int kExponentBits, int kMantissaBits, unsigned kLargest, bool kSaturates>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kDropped = 23 - kMantissaBits;
  static constexpr unsigned kSign = 1u << (kExponentBits + kMantissaBits);
  static constexpr unsigned kRebias = static_cast<unsigned>(127 - kBias) << 23;
  /// Its last place is that of the subnormals, so adding it lets the adder round to them.
  static constexpr unsigned kSubnormalRound = static_cast<unsigned>(127 - kBias + 1 + kDropped)
                                              << 23;

  /// binary32 to this, to nearest even, subnormals included. For finite values.
  LAUNCHGAP_HOST_DEVICE static unsigned from(float value) {
    const unsigned bits = float_bits(value);
    const unsigned sign = bits >> 31 ? kSign : 0;
    const unsigned magnitude = bits & 0x7FFFFFFFu;
    if (magnitude < kRebias + (1u << 23)) {
      const float shifted = float_from_bits(magnitude) + float_from_bits(kSubnormalRound);
      return sign | (float_bits(shifted) - kSubnormalRound);
    }
    const unsigned half = (1u << (kDropped - 1)) - 1u;
    const unsigned rounded =
        (magnitude - kRebias + half + ((magnitude >> kDropped) & 1u)) >> kDropped;
    const unsigned overflow = kSaturates ? kLargest : kLargest + 1;
    return sign | (rounded < overflow ? rounded : overflow);
  }

  LAUNCHGAP_HOST_DEVICE static float to(unsigned small) {
    const unsigned sign = small & kSign ? 0x80000000u : 0;
    const unsigned magnitude = small & (kSign - 1u);
    if (magnitude > kLargest) {
      const bool infinite =
          magnitude == kLargest + 1 && (magnitude & ((1u << kMantissaBits) - 1u)) == 0;
      return float_from_bits(sign | (infinite ? 0x7F800000u : 0x7FC00000u));
    }
    if (magnitude >> kMantissaBits == 0) {
      // Subnormal: the same sum, the other way round.
      const float value =
          float_from_bits(kSubnormalRound + magnitude) - float_from_bits(kSubnormalRound);
      return sign ? -value : value;
    }
    return float_from_bits(sign | ((magnitude << kDropped) + kRebias));
  }
};

using Fp16 = SmallFloat<5, 10, 0x7BFF, false>;
using Bf16 = SmallFloat<8, 7, 0x7F7F, false>;
using Fp8E4m3 = SmallFloat<4, 3, 0x7E, true>;  // Open Compute Project, OFP8 1.0
using Fp8E5m2 = SmallFloat<5, 2, 0x7B, true>;

LAUNCHGAP_HOST_DEVICE inline int to_integer(double value, int largest) {
  if (value > largest) return largest;
  if (value < -largest) return -largest;
  return static_cast<int>(value < 0 ? value - 0.5 : value + 0.5);
}

LAUNCHGAP_HOST_DEVICE inline void store_element(void* out,
                                                unsigned long long index,
                                                ElementType type,
                                                double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case ElementType::fp32:
      static_cast<float*>(out)[index] = single;
      break;
    case ElementType::fp16:
      static_cast<unsigned short*>(out)[index] = static_cast<unsigned short>(Fp16::from(single));
      break;
    case ElementType::bf16:
      static_cast<unsigned short*>(out)[index] = static_cast<unsigned short>(Bf16::from(single));
      break;
    case ElementType::fp64:
      static_cast<double*>(out)[index] = value;
      break;
    case ElementType::int8:
      static_cast<signed char*>(out)[index] = static_cast<signed char>(to_integer(value, 127));
      break;
    case ElementType::int32:
      static_cast<int*>(out)[index] = to_integer(value, 0x7FFFFFFF);
      break;
    case ElementType::fp8_e4m3:
      static_cast<unsigned char*>(out)[index] = static_cast<unsigned char>(Fp8E4m3::from(single));
      break;
    case ElementType::fp8_e5m2:
      static_cast<unsigned char*>(out)[index] = static_cast<unsigned char>(Fp8E5m2::from(single));
      break;
  }
}

inline double load_element(const void* in, unsigned long long index, ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return static_cast<const float*>(in)[index];
    case ElementType::fp16:
      return Fp16::to(static_cast<const unsigned short*>(in)[index]);
    case ElementType::bf16:
      return Bf16::to(static_cast<const unsigned short*>(in)[index]);
    case ElementType::fp64:
      return static_cast<const double*>(in)[index];
    case ElementType::int8:
      return static_cast<const signed char*>(in)[index];
    case ElementType::int32:
      return static_cast<const int*>(in)[index];
    case ElementType::fp8_e4m3:
      return Fp8E4m3::to(static_cast<const unsigned char*>(in)[index]);
    case ElementType::fp8_e5m2:
      return Fp8E5m2::to(static_cast<const unsigned char*>(in)[index]);
  }
  return 0;
}

inline unsigned long long element_bytes(ElementType type) {
  switch (type) {
    case ElementType::fp64:
      return 8;
    case ElementType::fp32:
    case ElementType::int32:
      return 4;
    case ElementType::fp16:
    case ElementType::bf16:
      return 2;
    case ElementType::int8:
    case ElementType::fp8_e4m3:
    case ElementType::fp8_e5m2:
      return 1;
  }
  return 1;
}

/// A byte of which an element of this type is no result: no number, or an integer below all sums.
inline unsigned char unwritten_byte(ElementType type) {
  return type == ElementType::int8 || type == ElementType::int32 ? 0x80 : 0xFF;
}

LAUNCHGAP_HOST_DEVICE inline double rounded_to(ElementType type, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case ElementType::fp32:
      return single;
    case ElementType::fp16:
      return Fp16::to(Fp16::from(single));
    case ElementType::bf16:
      return Bf16::to(Bf16::from(single));
    case ElementType::fp64:
      return value;
    case ElementType::int8:
      return to_integer(value, 127);
    case ElementType::int32:
      return to_integer(value, 0x7FFFFFFF);
    case ElementType::fp8_e4m3:
      return Fp8E4m3::to(Fp8E4m3::from(single));
    case ElementType::fp8_e5m2:
      return Fp8E5m2::to(Fp8E5m2::from(single));
  }
  return value;
}

}  // namespace launchgap::kernels
