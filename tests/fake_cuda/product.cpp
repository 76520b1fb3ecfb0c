#include "tests/fake_cuda/product.h"

#include <algorithm>
#include <vector>

namespace launchgap::fake {
namespace {

template <class Scalar>
using Vector __attribute__((vector_size(16))) = Scalar;

// One tile of results stays in the 16 registers that every x86-64 has: 8 sums, 2 of A, and
// broadcasts.
constexpr std::size_t kRows = 8;
constexpr std::size_t kColumns = 4;
// A block of A (kBlockRows x kBlockDepth) fits in L2, a panel of B (kColumns x kBlockDepth) in L1.
constexpr std::size_t kBlockDepth = 256;
constexpr std::size_t kBlockRows = 256;
constexpr std::size_t kBlockColumns = 512;

std::size_t panels(std::size_t count, std::size_t size) {
  return (count + size - 1) / size;
}

template <class Scalar>
Vector<Scalar> load(const Scalar* from) {
  Vector<Scalar> value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// sums (kColumns x kRows) += a (depth x kRows) b (depth x kColumns).
template <class Scalar>
void multiply_tile(std::size_t depth, const Scalar* a, const Scalar* b, Scalar* sums) {
  constexpr std::size_t kLanes = 16 / sizeof(Scalar);
  constexpr std::size_t kVectors = kRows / kLanes;
  Vector<Scalar> tile[kColumns][kVectors];
  for (std::size_t j = 0; j < kColumns; ++j) {
    for (std::size_t v = 0; v < kVectors; ++v) tile[j][v] = load(sums + j * kRows + v * kLanes);
  }
  for (std::size_t p = 0; p < depth; ++p) {
    Vector<Scalar> rows[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) rows[v] = load(a + p * kRows + v * kLanes);
    for (std::size_t j = 0; j < kColumns; ++j) {
      for (std::size_t v = 0; v < kVectors; ++v) tile[j][v] += rows[v] * b[p * kColumns + j];
    }
  }
  for (std::size_t j = 0; j < kColumns; ++j) {
    for (std::size_t v = 0; v < kVectors; ++v)
      __builtin_memcpy(sums + j * kRows + v * kLanes, &tile[j][v], sizeof tile[j][v]);
  }
}

template <class Scalar>
void compute_block(const Product<Scalar>& product,
                   std::size_t row,
                   std::size_t rows,
                   std::size_t column,
                   std::size_t columns) {
  const std::size_t row_panels = panels(rows, kRows);
  const std::size_t column_panels = panels(columns, kColumns);
  std::vector<Scalar> a(row_panels * kRows * kBlockDepth);
  std::vector<Scalar> b(column_panels * kColumns * kBlockDepth);
  std::vector<Scalar> sums(row_panels * kRows * column_panels * kColumns);
  for (std::size_t inner = 0; inner < product.k; inner += kBlockDepth) {
    const std::size_t depth = std::min(kBlockDepth, product.k - inner);
    for (std::size_t i = 0; i < rows; ++i) {
      Scalar* const to = a.data() + i / kRows * kRows * kBlockDepth + i % kRows;
      product.load_a_row(row + i, {inner, depth, to, kRows});
    }
    for (std::size_t j = 0; j < columns; ++j) {
      Scalar* const to = b.data() + j / kColumns * kColumns * kBlockDepth + j % kColumns;
      product.load_b_column(column + j, {inner, depth, to, kColumns});
    }
    for (std::size_t j = 0; j < column_panels; ++j) {
      for (std::size_t i = 0; i < row_panels; ++i) {
        multiply_tile(depth,
                      a.data() + i * kRows * kBlockDepth,
                      b.data() + j * kColumns * kBlockDepth,
                      sums.data() + (j * row_panels + i) * kRows * kColumns);
      }
    }
  }
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t tile = j / kColumns * row_panels + i / kRows;
      product.store(
          row + i, column + j, sums[tile * kRows * kColumns + j % kColumns * kRows + i % kRows]);
    }
  }
}

}  // namespace

template <class Scalar>
void compute_product(const Product<Scalar>& product) {
  for (std::size_t column = 0; column < product.n; column += kBlockColumns) {
    const std::size_t columns = std::min(kBlockColumns, product.n - column);
    for (std::size_t row = 0; row < product.m; row += kBlockRows) {
      compute_block(product, row, std::min(kBlockRows, product.m - row), column, columns);
    }
  }
}

template <class Scalar>
void compute_element(const Product<Scalar>& product, std::size_t row, std::size_t column) {
  std::vector<Scalar> a(product.k);
  std::vector<Scalar> b(product.k);
  product.load_a_row(row, {0, product.k, a.data(), 1});
  product.load_b_column(column, {0, product.k, b.data(), 1});
  Scalar sum = 0;
  for (std::size_t p = 0; p < product.k; ++p) sum += a[p] * b[p];
  product.store(row, column, sum);
}

template void compute_product(const Product<float>&);
template void compute_product(const Product<double>&);
template void compute_element(const Product<float>&, std::size_t, std::size_t);
template void compute_element(const Product<double>&, std::size_t, std::size_t);

}  // namespace launchgap::fake
