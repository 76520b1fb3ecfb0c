#include "tests/fake_cuda/gemm.h"

#include <algorithm>
#include <sstream>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/kept_results.h"
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

/// All of it but where the matrices are.
std::string text_of(const Gemm& g) {
  std::ostringstream text;
  text << std::hexfloat << "gemm " << g.transpose_a << g.transpose_b << ' ' << g.m << ' ' << g.n
       << ' ' << g.k << ' ' << g.alpha << ' ' << static_cast<int>(g.a_type) << ' '
       << static_cast<int>(g.b_type) << ' ' << static_cast<int>(g.out_type) << ' ' << g.lda << ' '
       << g.ldb << ' ' << g.ldc << ' ' << g.tf32 << ' ' << g.batch << ' ' << g.stride_a << ' '
       << g.stride_b << ' ' << g.stride_c;
  return text.str();
}

std::string signature_of(const Gemm& g) {
  std::ostringstream text;
  text << text_of(g) << ' ' << g.a << ' ' << g.b << ' ' << g.c;
  return text.str();
}

template <class Scalar>
Product<Scalar> product_of(const Gemm& g, std::size_t number) {
  // op(X)[outer][inner] for the rows of op(A) and the columns of op(B).
  const auto loader = [&](const void* matrix,
                          kernels::ElementType type,
                          std::size_t begin,
                          std::size_t outer_step,
                          std::size_t inner_step) {
    return [=, tf32 = g.tf32](std::size_t outer,
                              std::size_t first,
                              std::size_t count,
                              Scalar* to,
                              std::size_t stride) {
      for (std::size_t i = 0; i < count; ++i) {
        to[i * stride] = static_cast<Scalar>(load_operand(
            matrix, begin + outer * outer_step + (first + i) * inner_step, type, tf32));
      }
    };
  };
  Product<Scalar> product{g.m, g.n, g.k, {}, {}, {}};
  const std::size_t a = number * g.stride_a, b = number * g.stride_b;
  product.load_a_row =
      g.transpose_a ? loader(g.a, g.a_type, a, g.lda, 1) : loader(g.a, g.a_type, a, 1, g.lda);
  product.load_b_column =
      g.transpose_b ? loader(g.b, g.b_type, b, 1, g.ldb) : loader(g.b, g.b_type, b, g.ldb, 1);
  product.store = [g, number](std::size_t row, std::size_t column, Scalar sum) {
    const std::size_t index = number * g.stride_c + column * g.ldc + row;
    double value = g.alpha * static_cast<double>(sum);
    // As in BLAS, C is not read (it may hold anything) when beta is 0.
    if (g.beta != 0) value += g.beta * kernels::load_element(g.c, index, g.out_type);
    kernels::store_element(g.c, index, g.out_type, value);
  };
  return product;
}

template <class Scalar>
void compute(const Gemm& g, std::size_t begin, std::size_t end, std::size_t total) {
  const std::size_t size = kernels::element_bytes(g.out_type);
  for (std::size_t number = 0; number < g.batch; ++number) {
    const Product<Scalar> product = product_of<Scalar>(g, number);
    if (begin == 0 && end == total) {
      compute_product(product, 0, g.n);
      continue;
    }
    const std::size_t first = std::max(begin / size, number * g.stride_c);
    const std::size_t last =
        std::min((end + size - 1) / size, number * g.stride_c + (g.n - 1) * g.ldc + g.m);
    for (std::size_t index = first; index < last; ++index) {
      const std::size_t own = index - number * g.stride_c;
      if (own % g.ldc < g.m) compute_element(product, own % g.ldc, own / g.ldc);
    }
  }
}

}  // namespace

Operation gemm_operation(const Gemm& g) {
  Operation operation;
  const auto span = [&](const void* matrix,
                        std::size_t rows,
                        std::size_t columns,
                        std::size_t ld,
                        std::size_t stride,
                        kernels::ElementType type) {
    return range_of(matrix,
                    (g.batch - 1) * stride * kernels::element_bytes(type) +
                        span_bytes(rows, columns, ld, type));
  };
  operation.reads = {g.transpose_a ? span(g.a, g.k, g.m, g.lda, g.stride_a, g.a_type)
                                   : span(g.a, g.m, g.k, g.lda, g.stride_a, g.a_type),
                     g.transpose_b ? span(g.b, g.n, g.k, g.ldb, g.stride_b, g.b_type)
                                   : span(g.b, g.k, g.n, g.ldb, g.stride_b, g.b_type)};
  const Range c = span(g.c, g.m, g.n, g.ldc, g.stride_c, g.out_type);
  operation.writes = {c};
  operation.dense = g.ldc == g.m && (g.batch == 1 || g.stride_c == g.m * g.n);
  if (g.beta == 0) {
    operation.signature = signature_of(g);
  } else {
    operation.reads.push_back(c);
  }
  operation.compute = [g, total = c.bytes](std::size_t begin, std::size_t end) {
    if (needs_double(g.a_type)) {
      compute<double>(g, begin, end, total);
    } else {
      compute<float>(g, begin, end, total);
    }
  };
  keep_result(operation, text_of(g), 2.0 * static_cast<double>(g.m * g.n * g.k * g.batch));
  return operation;
}

}  // namespace launchgap::fake
