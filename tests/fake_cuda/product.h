// Matrix products in binary32 on the host, fast enough for tests.
#pragma once

#include <cstddef>
#include <functional>

namespace launchgap::fake {

/// For an m x n product with inner dimension k: operands by element, and where results go.
///
/// Every result is accumulated in the order of the inner index, so that computing it alone gives
/// the same bits.
struct Product {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  std::function<
      void(std::size_t row, std::size_t first, std::size_t count, float* to, std::size_t stride)>
      load_a_row;
  std::function<
      void(std::size_t column, std::size_t first, std::size_t count, float* to, std::size_t stride)>
      load_b_column;
  std::function<void(std::size_t row, std::size_t column, float sum)> store;
};

/// All of it, or the columns [first, last).
void compute_product(const Product& product, std::size_t first_column, std::size_t last_column);

/// One element.
void compute_element(const Product& product, std::size_t row, std::size_t column);

}  // namespace launchgap::fake
