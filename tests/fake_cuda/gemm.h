// What cublasGemmEx and cublasGemmStridedBatchedEx compute.
#pragma once

#include <cstddef>

#include "kernels/element.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// Column-major C (m x n) = alpha op(A) (m x k) op(B) (k x n) + beta C, accumulated in binary32, or
/// in binary64 where the type has more digits; `batch` of them, each so many elements behind the
/// last.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  std::size_t m = 0, n = 0, k = 0;
  double alpha = 1, beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  kernels::ElementType a_type = kernels::ElementType::fp32;
  kernels::ElementType b_type = kernels::ElementType::fp32;
  kernels::ElementType out_type = kernels::ElementType::fp32;
  std::size_t lda = 0, ldb = 0, ldc = 0;
  bool tf32 = false;
  std::size_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

Operation gemm_operation(const Gemm& gemm);

}  // namespace launchgap::fake
