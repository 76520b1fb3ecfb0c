// What cublasGemmEx and cublasGemmStridedBatchedEx compute.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/element.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// A column-major matrix, or `batch` of them.
struct Matrix {
  const void* memory = nullptr;
  kernels::ElementType type = kernels::ElementType::fp32;
  std::size_t ld = 0, stride = 0;
  bool transposed = false;

  /// Bytes from the first to the last element of `batch` of them; op(it) has so many rows.
  std::size_t bytes(std::size_t rows, std::size_t columns, std::size_t batch) const {
    if (transposed) std::swap(rows, columns);
    const std::size_t span = rows == 0 || columns == 0 ? 0 : (columns - 1) * ld + rows;
    return ((batch - 1) * stride + span) * kernels::element_bytes(type);
  }
};

/// Column-major C (m x n) = alpha op(A) (m x k) op(B) (k x n) + beta C, accumulated in binary32, or
/// in binary64 where the type has more digits; `batch` of them, each so many elements behind the
/// last.
struct Gemm {
  Matrix a, b, c;
  std::size_t m = 0, n = 0, k = 0, batch = 1;
  double alpha = 1, beta = 0;
  bool tf32 = false;
};

Operation gemm_operation(const Gemm& gemm);

}  // namespace launchgap::fake
