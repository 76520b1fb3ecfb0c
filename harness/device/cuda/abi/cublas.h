// The part of cuBLAS's binary interface that launchgap calls; the same in every release from 11
// to 13. tests/device/cuda_abi_test.cpp compares it with cublas_v2.h where a toolkit is installed.
#pragma once

#include <cstddef>
#include <type_traits>

#include "harness/device/cuda/abi/driver.h"

namespace launchgap::cuda::abi {

using CublasHandle = struct CublasContext*;
using CublasStatus = int;

enum : CublasStatus {
  kCublasSuccess = 0,
  kCublasNotInitialized = 1,
  kCublasAllocFailed = 3,
  kCublasInvalidValue = 7,
  kCublasArchMismatch = 8,
  kCublasExecutionFailed = 13,
  kCublasInternalError = 14,
  kCublasNotSupported = 15,
};

enum CublasOperation : int { kCublasOpN = 0, kCublasOpT = 1 };
enum CudaDataType : int {
  kCudaR32F = 0,
  kCudaR64F = 1,
  kCudaR16F = 2,
  kCudaR8I = 3,
  kCudaR32I = 10,
  kCudaR16BF = 14,
  kCudaR8FE4m3 = 28,
  kCudaR8FE5m2 = 29
};
enum CublasComputeType : int {
  kCompute16F = 64,
  kCompute32F = 68,
  kCompute32FPedantic = 69,
  kCompute64F = 70,
  kCompute32I = 72,
  kCompute32FFastTf32 = 77
};
/// Sums stay in the type of the computation, also where the library splits k between blocks.
enum CublasMath : int { kDisallowReducedPrecisionReduction = 16 };
/// The second measures the algorithms that there are at the first call, and keeps the best in the
/// handle. Source: cublas_api.h of 13.0; 12.9 and before refuse it.
enum CublasGemmAlgo : int { kGemmDefault = -1, kGemmAutotune = 999 };

/// X(exported symbol, required, signature). cublasGemmEx is column-major:
/// C (m x n) = alpha op(A) (m x k) op(B) (k x n) + beta C. It and cublasGemmStridedBatchedEx need
/// compute capability 5.0; cublasSgemm and cublasDgemm do not. alpha and beta have the type of the
/// computation.
#define LAUNCHGAP_CUBLAS_FUNCTIONS(X)                                           \
  X(cublasCreate_v2, true, CublasStatus(CublasHandle* handle))                  \
  X(cublasDestroy_v2, true, CublasStatus(CublasHandle handle))                  \
  X(cublasGetVersion_v2, true, CublasStatus(CublasHandle handle, int* version)) \
  X(cublasSetStream_v2, true, CublasStatus(CublasHandle handle, Stream stream)) \
  X(cublasSetWorkspace_v2,                                                      \
    false,                                                                      \
    CublasStatus(CublasHandle handle, void* workspace, std::size_t n))          \
  X(cublasSetMathMode, false, CublasStatus(CublasHandle handle, int mode))      \
  X(cublasGetStatusString, false, const char*(CublasStatus status))             \
  X(cublasSgemm_v2,                                                             \
    true,                                                                       \
    CublasStatus(CublasHandle handle,                                           \
                 int op_a,                                                      \
                 int op_b,                                                      \
                 int m,                                                         \
                 int n,                                                         \
                 int k,                                                         \
                 const float* alpha,                                            \
                 const float* a,                                                \
                 int lda,                                                       \
                 const float* b,                                                \
                 int ldb,                                                       \
                 const float* beta,                                             \
                 float* c,                                                      \
                 int ldc))                                                      \
  X(cublasDgemm_v2,                                                             \
    true,                                                                       \
    CublasStatus(CublasHandle handle,                                           \
                 int op_a,                                                      \
                 int op_b,                                                      \
                 int m,                                                         \
                 int n,                                                         \
                 int k,                                                         \
                 const double* alpha,                                           \
                 const double* a,                                               \
                 int lda,                                                       \
                 const double* b,                                               \
                 int ldb,                                                       \
                 const double* beta,                                            \
                 double* c,                                                     \
                 int ldc))                                                      \
  X(cublasGemmEx,                                                               \
    true,                                                                       \
    CublasStatus(CublasHandle handle,                                           \
                 int op_a,                                                      \
                 int op_b,                                                      \
                 int m,                                                         \
                 int n,                                                         \
                 int k,                                                         \
                 const void* alpha,                                             \
                 const void* a,                                                 \
                 int a_type,                                                    \
                 int lda,                                                       \
                 const void* b,                                                 \
                 int b_type,                                                    \
                 int ldb,                                                       \
                 const void* beta,                                              \
                 void* c,                                                       \
                 int c_type,                                                    \
                 int ldc,                                                       \
                 int compute_type,                                              \
                 int algorithm))                                                \
  X(cublasGemmStridedBatchedEx,                                                 \
    true,                                                                       \
    CublasStatus(CublasHandle handle,                                           \
                 int op_a,                                                      \
                 int op_b,                                                      \
                 int m,                                                         \
                 int n,                                                         \
                 int k,                                                         \
                 const void* alpha,                                             \
                 const void* a,                                                 \
                 int a_type,                                                    \
                 int lda,                                                       \
                 long long stride_a,                                            \
                 const void* b,                                                 \
                 int b_type,                                                    \
                 int ldb,                                                       \
                 long long stride_b,                                            \
                 const void* beta,                                              \
                 void* c,                                                       \
                 int c_type,                                                    \
                 int ldc,                                                       \
                 long long stride_c,                                            \
                 int batch,                                                     \
                 int compute_type,                                              \
                 int algorithm))

/// One pointer per function; optional ones may be null.
struct CublasFunctions {
#define LAUNCHGAP_DECLARE(name, required, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE
};

}  // namespace launchgap::cuda::abi
