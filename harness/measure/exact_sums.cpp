#include "harness/measure/exact_sums.h"

#include <algorithm>
#include <random>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

/// Of the mantissa, or of an integer without its sign, by ElementType.
constexpr int kBits[] = {24, 11, 8, 53, 7, 31, 4, 3};

bool is_integer(ElementType type) {
  return type == ElementType::int8 || type == ElementType::int32;
}

/// Up to which a type has all integers.
long long largest_exact(ElementType type) {
  return (1ll << kBits[static_cast<std::size_t>(type)]) - (is_integer(type) ? 1 : 0);
}

/// The type in which sums are kept.
ElementType sum_type(Compute compute) {
  return compute == Compute::fp64    ? ElementType::fp64
         : compute == Compute::fp16  ? ElementType::fp16
         : compute == Compute::int32 ? ElementType::int32
                                     : ElementType::fp32;
}

/// The relative error of one rounding, at most.
double unit(ElementType type) {
  return is_integer(type) ? 0 : std::ldexp(1, -kBits[static_cast<std::size_t>(type)]);
}

/// Sums in FP32 of FP32 products, whose errors are known well enough to tell other arithmetic.
bool is_plain_fp32(const ProductType& type) {
  return type.a == ElementType::fp32 && type.compute != Compute::tf32;
}

}  // namespace

long long largest_exact(const ProductType& type) {
  return std::min(largest_exact(type.c), largest_exact(sum_type(type.compute)));
}

std::vector<long long> random_weights(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<long long> weights(count);
  for (long long& weight : weights) {
    const std::uint64_t bits = random();
    weight = static_cast<long long>(1 + bits % 32767) * (bits >> 63 ? -1 : 1);
  }
  return weights;
}

void wrong(const std::string& where, double expected, double found) {
  throw WrongResult("wrong result: {} is {} and must be {}", where, found, expected);
}

bool as_integer(double value, long long largest, long long& integer) {
  if (!(std::abs(value) <= static_cast<double>(largest)) || value != std::trunc(value))
    return false;
  integer = static_cast<long long>(value);
  return true;
}

Accuracy::Accuracy(const ProductType& type, std::size_t terms, double tolerance, bool parts_rounded)
    : type_(type),
      terms_(static_cast<double>(terms)),
      tolerance_(tolerance),
      parts_rounded_(parts_rounded) {}

double Accuracy::allowed(const Terms& terms) const {
  const double u = unit(sum_type(type_.compute));
  double summing = 0;
  if (type_.compute == Compute::fp16) {
    summing = 8 * u * std::sqrt(terms_ * terms.squares);
  } else {
    const double gamma = terms_ * u / (1 - terms_ * u);
    // TF32 rounds both operands. The tensor cores of FP8 keep fewer digits of their sums than FP32
    // has: about 14 bits were reported of Hopper's (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
    const bool short_sums = type_.compute == Compute::tf32 || type_.is_fp8();
    summing = (gamma + (short_sums ? 2.5 * 0x1p-10 : 0)) * terms.magnitude;
    // Of errors that are independent, a sum whose every term is rounded to the result's type has
    // 0.3 u sqrt(terms * squares), and one of 28 terms a part a fifth of that.
    if (parts_rounded_) summing += 0.25 * unit(type_.c) * std::sqrt(terms_ * terms.squares);
  }
  const auto size = static_cast<double>(std::abs(terms.sum));
  return tolerance_ * (summing + unit(type_.c) * (size + summing));
}

void Accuracy::check(const std::string& where, double found, const Terms& terms) {
  const auto error = static_cast<double>(std::abs(found - terms.sum));
  if (!(error <= allowed(terms)))
    wrong(where + " of the timed result", static_cast<double>(terms.sum), found);
  errors_ += error * error;
  squares_ += terms.squares;
}

void Accuracy::check_mean() const {
  if (!(squares_ > 0)) return;
  const double relative = std::sqrt(errors_ / squares_);
  const auto check = [&](const char* name, double most) {
    if (relative > tolerance_ * most) {
      throw WrongResult(
          "the timed result has errors of {:.2g} of its size: that is not {} arithmetic",
          relative,
          name);
    }
  };
  if (is_plain_fp32(type_)) check("FP32", 0x1p-15);
  if (type_.compute == Compute::fp64) check("FP64", 0x1p-40);
}

}  // namespace launchgap
