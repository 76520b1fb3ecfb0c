// Matrix products on the host, summed in binary32 or binary64, fast enough for tests.
#pragma once

#include <cstddef>
#include <functional>

namespace launchgap::fake {

/// For an m x n product with inner dimension k: operands by element, and where results go.
///
/// Every result is accumulated in the order of the inner index, so that computing it alone gives
/// the same bits.
template <class Scalar>
struct Product {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  std::function<
      void(std::size_t row, std::size_t first, std::size_t count, Scalar* to, std::size_t stride)>
      load_a_row;
  std::function<void(std::size_t column,
                     std::size_t first,
                     std::size_t count,
                     Scalar* to,
                     std::size_t stride)>
      load_b_column;
  std::function<void(std::size_t row, std::size_t column, Scalar sum)> store;
};

/// All of it, or the columns [first, last).
template <class Scalar>
void compute_product(const Product<Scalar>& product,
                     std::size_t first_column,
                     std::size_t last_column);

/// One element.
template <class Scalar>
void compute_element(const Product<Scalar>& product, std::size_t row, std::size_t column);

}  // namespace launchgap::fake
