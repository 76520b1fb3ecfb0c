#include "tests/fake_cuda/gemm.h"

#include <algorithm>
#include <sstream>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/product.h"

namespace launchgap::fake {
namespace {

/// Bytes from the first to the last element of a column-major matrix.
std::size_t span_bytes(std::size_t rows,
                       std::size_t columns,
                       std::size_t ld,
                       kernels::ElementType type) {
  if (rows == 0 || columns == 0) return 0;
  return ((columns - 1) * ld + rows) * kernels::element_bytes(type);
}

std::string signature_of(const Gemm& g) {
  std::ostringstream text;
  text << std::hexfloat << "gemm " << g.transpose_a << g.transpose_b << ' ' << g.m << ' ' << g.n
       << ' ' << g.k << ' ' << g.alpha << ' ' << g.a << ' ' << g.b << ' ' << g.c << ' '
       << static_cast<int>(g.in_type) << ' ' << static_cast<int>(g.out_type) << ' ' << g.lda << ' '
       << g.ldb << ' ' << g.ldc << ' ' << g.tf32;
  return text.str();
}

Product product_of(const Gemm& g) {
  // op(X)[outer][inner] for the rows of op(A) and the columns of op(B).
  const auto loader = [&](const void* matrix, std::size_t outer_step, std::size_t inner_step) {
    return [=, type = g.in_type, tf32 = g.tf32](std::size_t outer,
                                                std::size_t first,
                                                std::size_t count,
                                                float* to,
                                                std::size_t stride) {
      for (std::size_t i = 0; i < count; ++i) {
        to[i * stride] =
            load_operand(matrix, outer * outer_step + (first + i) * inner_step, type, tf32);
      }
    };
  };
  Product product{g.m, g.n, g.k, {}, {}, {}};
  product.load_a_row = g.transpose_a ? loader(g.a, g.lda, 1) : loader(g.a, 1, g.lda);
  product.load_b_column = g.transpose_b ? loader(g.b, 1, g.ldb) : loader(g.b, g.ldb, 1);
  product.store = [g](std::size_t row, std::size_t column, float sum) {
    const std::size_t index = column * g.ldc + row;
    float value = g.alpha * sum;
    // As in BLAS, C is not read (it may hold anything) when beta is 0.
    if (g.beta != 0) value += g.beta * kernels::load_element(g.c, index, g.out_type);
    kernels::store_element(g.c, index, g.out_type, value);
  };
  return product;
}

}  // namespace

Operation gemm_operation(const Gemm& g) {
  Operation operation;
  operation.reads = {range_of(g.a,
                              g.transpose_a ? span_bytes(g.k, g.m, g.lda, g.in_type)
                                            : span_bytes(g.m, g.k, g.lda, g.in_type)),
                     range_of(g.b,
                              g.transpose_b ? span_bytes(g.n, g.k, g.ldb, g.in_type)
                                            : span_bytes(g.k, g.n, g.ldb, g.in_type))};
  const Range c = range_of(g.c, span_bytes(g.m, g.n, g.ldc, g.out_type));
  operation.writes = {c};
  operation.dense = g.ldc == g.m;
  if (g.beta == 0) {
    operation.signature = signature_of(g);
  } else {
    operation.reads.push_back(c);
  }
  operation.compute = [g, total = c.bytes](std::size_t begin, std::size_t end) {
    const Product product = product_of(g);
    if (begin == 0 && end == total) return compute_product(product, 0, g.n);
    const std::size_t size = kernels::element_bytes(g.out_type);
    for (std::size_t index = begin / size; index < (end + size - 1) / size; ++index) {
      if (index % g.ldc < g.m) compute_element(product, index % g.ldc, index / g.ldc);
    }
  };
  return operation;
}

}  // namespace launchgap::fake
