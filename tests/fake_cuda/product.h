// Matrix products on the host, summed in binary32 or binary64, fast enough for tests.
#pragma once

#include <cstddef>
#include <functional>

namespace launchgap::fake {

/// Elements [first, first + count) of a row or column, one every `stride` places from `to` on.
template <class Scalar>
struct Slice {
  std::size_t first, count;
  Scalar* to;
  std::size_t stride;
};

/// For an m x n product with inner dimension k: operands by element, and where results go.
///
/// Every result is accumulated in the order of the inner index, so that computing it alone gives
/// the same bits.
template <class Scalar>
struct Product {
  std::size_t m = 0, n = 0, k = 0;
  std::function<void(std::size_t row, const Slice<Scalar>& slice)> load_a_row;
  std::function<void(std::size_t column, const Slice<Scalar>& slice)> load_b_column;
  std::function<void(std::size_t row, std::size_t column, Scalar sum)> store;
};

template <class Scalar>
void compute_product(const Product<Scalar>& product);

/// One element.
template <class Scalar>
void compute_element(const Product<Scalar>& product, std::size_t row, std::size_t column);

}  // namespace launchgap::fake
