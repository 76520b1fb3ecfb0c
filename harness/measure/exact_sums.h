// What the verification of products and of convolutions has in common: which sums of small
// integers are exact, and how far others may be from what they are.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/device/product_type.h"

namespace launchgap {

inline constexpr long long kLargestProduct = 4;  // of two small integers

/// The largest integer up to which the result's type and the sums' hold all.
long long largest_exact(const ProductType& type);

/// The largest sum of `terms` products of small integers of which each `step`-th is not zero, give
/// or take one.
inline long long largest_sum(std::size_t terms, std::uint64_t step) {
  return static_cast<long long>((terms + step - 1) / step) * kLargestProduct;
}

inline long long small_integer(std::uint64_t seed, std::size_t index) {
  return static_cast<long long>(
      kernels::element(seed, index, kernels::Distribution::small_integer, ElementType::fp32));
}

/// Of the operand that may be sparse.
inline long long sparse_integer(std::uint64_t seed, std::size_t index, std::uint64_t step) {
  return static_cast<long long>(kernels::sparse_element(
      seed, index, kernels::Distribution::small_integer, ElementType::fp32, step));
}

/// Non-zero integers of 15 bits and a sign.
std::vector<long long> random_weights(std::uint64_t seed, std::size_t count);

/// Throws WrongResult.
[[noreturn]] void wrong(const std::string& where, double expected, double found);

/// A result as an integer; `false` where it is none, or larger than any sum can be.
bool as_integer(double value, long long largest, long long& integer);

/// A sum of products, its terms' magnitudes and their squares.
struct Terms {
  long double sum = 0;
  double magnitude = 0, squares = 0;
  void add(double a, double b) {
    const long double product = static_cast<long double>(a) * b;
    sum += product;
    magnitude += std::abs(a * b);
    squares += a * b * a * b;
  }
};

/// Errors of sampled elements against what summation and the types' rounding allow.
class Accuracy {
 public:
  /// `parts_rounded`: the sums of parts may have been added up in the result's type.
  Accuracy(const ProductType& type,
           std::size_t terms,
           double tolerance,
           bool parts_rounded = false);

  /// One element: what it is and the terms that it is the sum of.
  void check(const std::string& where, double found, const Terms& terms);
  /// After the last element.
  void check_mean() const;

 private:
  double allowed(const Terms& terms) const;

  const ProductType& type_;
  double terms_;
  double tolerance_;
  bool parts_rounded_;
  double errors_ = 0;
  double squares_ = 0;
};

}  // namespace launchgap
