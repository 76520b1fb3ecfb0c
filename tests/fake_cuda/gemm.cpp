#include "tests/fake_cuda/gemm.h"

#include <algorithm>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/kept_results.h"
#include "tests/fake_cuda/product.h"

namespace launchgap::fake {
namespace {

std::string text_of(const Matrix& matrix) {
  return signature_of(int(matrix.type), matrix.ld, matrix.stride, matrix.transposed);
}

/// All of it but where the matrices are.
std::string text_of(const Gemm& g) {
  return signature_of(
      "gemm", text_of(g.a), text_of(g.b), text_of(g.c), g.m, g.n, g.k, g.batch, g.alpha, g.tf32);
}

template <class Scalar>
Product<Scalar> product_of(const Gemm& g, std::size_t number) {
  // op(X)[outer][inner] for the rows of op(A) and the columns of op(B).
  const auto loader = [&](const Matrix& matrix, bool inner_is_dense) {
    return [matrix,
            begin = number * matrix.stride,
            outer_step = inner_is_dense ? matrix.ld : 1,
            inner_step = inner_is_dense ? 1 : matrix.ld,
            tf32 = g.tf32](std::size_t outer, const Slice<Scalar>& slice) {
      for (std::size_t i = 0; i < slice.count; ++i) {
        const std::size_t index = begin + outer * outer_step + (slice.first + i) * inner_step;
        slice.to[i * slice.stride] =
            static_cast<Scalar>(load_operand(matrix.memory, index, matrix.type, tf32));
      }
    };
  };
  Product<Scalar> product{g.m, g.n, g.k, {}, {}, {}};
  product.load_a_row = loader(g.a, g.a.transposed);
  product.load_b_column = loader(g.b, !g.b.transposed);
  product.store = [g, number](std::size_t row, std::size_t column, Scalar sum) {
    const std::size_t index = number * g.c.stride + column * g.c.ld + row;
    double value = g.alpha * static_cast<double>(sum);
    // As in BLAS, C is not read (it may hold anything) when beta is 0.
    if (g.beta != 0) value += g.beta * kernels::load_element(g.c.memory, index, g.c.type);
    kernels::store_element(const_cast<void*>(g.c.memory), index, g.c.type, value);
  };
  return product;
}

template <class Scalar>
void compute(const Gemm& g, std::size_t begin, std::size_t end, std::size_t total) {
  const std::size_t size = kernels::element_bytes(g.c.type);
  for (std::size_t number = 0; number < g.batch; ++number) {
    const Product<Scalar> product = product_of<Scalar>(g, number);
    if (begin == 0 && end == total) {
      compute_product(product);
      continue;
    }
    const std::size_t first = std::max(begin / size, number * g.c.stride);
    const std::size_t last =
        std::min((end + size - 1) / size, number * g.c.stride + (g.n - 1) * g.c.ld + g.m);
    for (std::size_t index = first; index < last; ++index) {
      const std::size_t own = index - number * g.c.stride;
      if (own % g.c.ld < g.m) compute_element(product, own % g.c.ld, own / g.c.ld);
    }
  }
}

}  // namespace

Operation gemm_operation(const Gemm& g) {
  const auto range = [&](const Matrix& matrix, std::size_t rows, std::size_t columns) {
    return range_of(matrix.memory, matrix.bytes(rows, columns, g.batch));
  };
  const Range c = range(g.c, g.m, g.n);
  Operation operation;
  operation.reads = {range(g.a, g.m, g.k), range(g.b, g.k, g.n)};
  operation.writes = {c};
  operation.dense = g.c.ld == g.m && (g.batch == 1 || g.c.stride == g.m * g.n);
  if (g.beta == 0) {
    operation.signature = signature_of(text_of(g), g.a.memory, g.b.memory, g.c.memory);
  } else {
    operation.reads.push_back(c);
  }
  operation.compute = [g, total = c.bytes](std::size_t begin, std::size_t end) {
    if (needs_double(g.a.type)) {
      compute<double>(g, begin, end, total);
    } else {
      compute<float>(g, begin, end, total);
    }
  };
  keep_result(operation, text_of(g), 2.0 * static_cast<double>(g.m * g.n * g.k * g.batch));
  return operation;
}

}  // namespace launchgap::fake
