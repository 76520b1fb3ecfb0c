// The fake libcublas: cublasGemmEx computed on the host, laid on the fake driver's streams.
#include "harness/device/cuda/abi/cublas.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "tests/fake_cuda/element_type.h"
#include "tests/fake_cuda/gemm.h"
#include "tests/fake_cuda/operation.h"

#define EXPORT LAUNCHGAP_FAKE_EXPORT

EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

struct Handle {
  Stream stream = nullptr;
};

Handle* handle_of(CublasHandle handle) {
  return reinterpret_cast<Handle*>(handle);
}

CublasStatus enter(const char* call) {
  Driver* const driver = find_driver();
  return driver == nullptr ? CublasStatus{kCublasNotInitialized}
                           : driver->enter(Library::cublas, call);
}

std::optional<kernels::ElementType> element_type(int type) {
  switch (type) {
    case kCudaR32F:
      return kernels::ElementType::fp32;
    case kCudaR16F:
      return kernels::ElementType::fp16;
    case kCudaR16BF:
      return kernels::ElementType::bf16;
    default:
      return std::nullopt;
  }
}

bool is_operation(int operation) {
  return operation == kCublasOpN || operation == kCublasOpT;
}

bool large_enough(int ld, int rows) {
  return ld >= std::max(1, rows);
}

CublasStatus multiply(double begin,
                      CublasHandle handle,
                      int op_a,
                      int op_b,
                      int m,
                      int n,
                      int k,
                      const void* alpha,
                      const void* a,
                      int a_type,
                      int lda,
                      const void* b,
                      int b_type,
                      int ldb,
                      const void* beta,
                      void* c,
                      int c_type,
                      int ldc,
                      int compute_type) {
  if (handle == nullptr) return kCublasNotInitialized;
  if (!is_operation(op_a) || !is_operation(op_b) || m < 0 || n < 0 || k < 0)
    return kCublasInvalidValue;
  if (alpha == nullptr || beta == nullptr) return kCublasInvalidValue;
  if (!large_enough(lda, op_a == kCublasOpN ? m : k) ||
      !large_enough(ldb, op_b == kCublasOpN ? k : n) || !large_enough(ldc, m)) {
    return kCublasInvalidValue;
  }
  const auto in_type = element_type(a_type);
  const auto out_type = element_type(c_type);
  if (!in_type || !out_type || a_type != b_type) return kCublasNotSupported;
  if (c_type != a_type && out_type != kernels::ElementType::fp32) return kCublasNotSupported;
  const bool fast_tf32 = compute_type == kCompute32FFastTf32;
  if (compute_type != kCompute32F && compute_type != kCompute32FPedantic && !fast_tf32)
    return kCublasNotSupported;
  if (fast_tf32 && in_type != kernels::ElementType::fp32) return kCublasNotSupported;
  const DeviceDescription* device = nullptr;
  if (find_driver()->current_device(&device) != kSuccess) return kCublasExecutionFailed;
  if (device->capability() < first_capability(*in_type)) return kCublasArchMismatch;
  const Arithmetic how = arithmetic(*device, *in_type, fast_tf32);
  if (!how.tflops) return kCublasNotSupported;
  if (m == 0 || n == 0) return kCublasSuccess;

  Gemm gemm;
  gemm.transpose_a = op_a == kCublasOpT;
  gemm.transpose_b = op_b == kCublasOpT;
  gemm.m = static_cast<std::size_t>(m);
  gemm.n = static_cast<std::size_t>(n);
  gemm.k = static_cast<std::size_t>(k);
  gemm.alpha = *static_cast<const float*>(alpha);
  gemm.beta = *static_cast<const float*>(beta);
  gemm.a = a;
  gemm.b = b;
  gemm.c = c;
  gemm.in_type = *in_type;
  gemm.out_type = *out_type;
  gemm.lda = static_cast<std::size_t>(lda);
  gemm.ldb = static_cast<std::size_t>(ldb);
  gemm.ldc = static_cast<std::size_t>(ldc);
  gemm.tf32 = how.tf32;
  const double duration_ns = work_ns(2.0 * m * n * k, *how.tflops);
  constexpr std::size_t kTile = 128;
  constexpr unsigned kThreads = 256;
  const std::string name = "fake_gemm_" + rate_name(*in_type, how) + "_128x128";
  const KernelShape shape{kernel_name(name),
                          {blocks_for(gemm.m, kTile), blocks_for(gemm.n, kTile), 1},
                          {kThreads, 1, 1},
                          0};
  const auto launched = find_driver()->launch(LibraryCaller::library,
                                              handle_of(handle)->stream,
                                              begin,
                                              {{shape, 1}},
                                              duration_ns,
                                              gemm_operation(gemm));
  return launched == kSuccess ? kCublasSuccess : kCublasExecutionFailed;
}

}  // namespace

EXPORT CublasStatus cublasCreate_v2(CublasHandle* handle) {
  if (const CublasStatus status = enter("cublasCreate_v2")) return status;
  const DeviceDescription* device = nullptr;
  if (find_driver()->current_device(&device) != kSuccess) return kCublasNotInitialized;
  if (handle == nullptr) return kCublasInvalidValue;
  find_driver()->load_library(Library::cublas);
  *handle = reinterpret_cast<CublasHandle>(new Handle);
  return kCublasSuccess;
}

EXPORT CublasStatus cublasDestroy_v2(CublasHandle handle) {
  if (const CublasStatus status = enter("cublasDestroy_v2")) return status;
  if (handle == nullptr) return kCublasNotInitialized;
  delete handle_of(handle);
  return kCublasSuccess;
}

EXPORT CublasStatus cublasGetVersion_v2(CublasHandle, int* version) {
  if (const CublasStatus status = enter("cublasGetVersion_v2")) return status;
  if (version == nullptr) return kCublasInvalidValue;
  *version = find_driver()->node()->cublas_version;
  return kCublasSuccess;
}

EXPORT CublasStatus cublasSetStream_v2(CublasHandle handle, Stream stream) {
  if (const CublasStatus status = enter("cublasSetStream_v2")) return status;
  if (handle == nullptr) return kCublasNotInitialized;
  handle_of(handle)->stream = stream;
  return kCublasSuccess;
}

EXPORT CublasStatus cublasSetWorkspace_v2(CublasHandle handle, void*, std::size_t) {
  if (const CublasStatus status = enter("cublasSetWorkspace_v2")) return status;
  return handle == nullptr ? kCublasNotInitialized : kCublasSuccess;
}

EXPORT const char* cublasGetStatusString(CublasStatus status) {
  switch (status) {
    case kCublasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kCublasNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kCublasAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kCublasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kCublasArchMismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case kCublasExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kCublasInternalError:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case kCublasNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "<unknown>";
  }
}

EXPORT CublasStatus cublasSetMathMode(CublasHandle handle, int) {
  if (const CublasStatus status = enter("cublasSetMathMode")) return status;
  return handle == nullptr ? kCublasNotInitialized : kCublasSuccess;
}

EXPORT CublasStatus cublasGemmEx(CublasHandle handle,
                                 int op_a,
                                 int op_b,
                                 int m,
                                 int n,
                                 int k,
                                 const void* alpha,
                                 const void* a,
                                 int a_type,
                                 int lda,
                                 const void* b,
                                 int b_type,
                                 int ldb,
                                 const void* beta,
                                 void* c,
                                 int c_type,
                                 int ldc,
                                 int compute_type,
                                 int) {
  const double begin = now_ns();
  if (const CublasStatus status = enter("cublasGemmEx")) return status;
  // As in the real library, whatever the types: cuBLAS documentation, "cublasGemmEx".
  const DeviceDescription* device = nullptr;
  if (find_driver()->current_device(&device) == kSuccess && device->capability() < 50) {
    return kCublasArchMismatch;
  }
  return multiply(begin,
                  handle,
                  op_a,
                  op_b,
                  m,
                  n,
                  k,
                  alpha,
                  a,
                  a_type,
                  lda,
                  b,
                  b_type,
                  ldb,
                  beta,
                  c,
                  c_type,
                  ldc,
                  compute_type);
}

EXPORT CublasStatus cublasSgemm_v2(CublasHandle handle,
                                   int op_a,
                                   int op_b,
                                   int m,
                                   int n,
                                   int k,
                                   const float* alpha,
                                   const float* a,
                                   int lda,
                                   const float* b,
                                   int ldb,
                                   const float* beta,
                                   float* c,
                                   int ldc) {
  const double begin = now_ns();
  if (const CublasStatus status = enter("cublasSgemm_v2")) return status;
  return multiply(begin,
                  handle,
                  op_a,
                  op_b,
                  m,
                  n,
                  k,
                  alpha,
                  a,
                  kCudaR32F,
                  lda,
                  b,
                  kCudaR32F,
                  ldb,
                  beta,
                  c,
                  kCudaR32F,
                  ldc,
                  kCompute32F);
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
