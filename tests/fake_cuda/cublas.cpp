// The fake libcublas: products computed on the host, laid on the fake driver's streams.
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
    case kCudaR64F:
      return kernels::ElementType::fp64;
    case kCudaR32F:
      return kernels::ElementType::fp32;
    case kCudaR16F:
      return kernels::ElementType::fp16;
    case kCudaR16BF:
      return kernels::ElementType::bf16;
    case kCudaR8I:
      return kernels::ElementType::int8;
    case kCudaR32I:
      return kernels::ElementType::int32;
    default:
      return std::nullopt;
  }
}

/// Which types go together: cuBLAS documentation, "cublasGemmEx", the table of compute types. And
/// the type of alpha and beta.
struct Combination {
  int compute, ab, c;
  kernels::ElementType scalar;
};
constexpr Combination kCombinations[] = {
    {kCompute16F, kCudaR16F, kCudaR16F, kernels::ElementType::fp16},
    {kCompute32F, kCudaR16F, kCudaR16F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16BF, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32F, kCudaR16BF, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR8I, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32F, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR16F, kCudaR16F, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR16BF, kCudaR16BF, kernels::ElementType::fp32},
    {kCompute32FPedantic, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute32FFastTf32, kCudaR32F, kCudaR32F, kernels::ElementType::fp32},
    {kCompute64F, kCudaR64F, kCudaR64F, kernels::ElementType::fp64},
    {kCompute32I, kCudaR8I, kCudaR32I, kernels::ElementType::int32},
};

/// INT8 needs leading dimensions and addresses that are multiples of 4, and then takes any size
/// (the same table's notes).
bool is_aligned_for_int8(int lda, int ldb, const void* a, const void* b) {
  const auto address = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  };
  return lda % 4 == 0 && ldb % 4 == 0 && address(a) % 4 == 0 && address(b) % 4 == 0;
}

struct Batch {
  int count = 1;
  long long stride_a = 0, stride_b = 0, stride_c = 0;
};

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
                      int compute_type,
                      const Batch& batch = {}) {
  if (handle == nullptr) return kCublasNotInitialized;
  if (!is_operation(op_a) || !is_operation(op_b) || m < 0 || n < 0 || k < 0)
    return kCublasInvalidValue;
  if (alpha == nullptr || beta == nullptr) return kCublasInvalidValue;
  if (!large_enough(lda, op_a == kCublasOpN ? m : k) ||
      !large_enough(ldb, op_b == kCublasOpN ? k : n) || !large_enough(ldc, m)) {
    return kCublasInvalidValue;
  }
  if (batch.count < 0) return kCublasInvalidValue;
  const auto combination = std::ranges::find_if(kCombinations, [&](const Combination& row) {
    return row.compute == compute_type && row.ab == a_type && row.ab == b_type && row.c == c_type;
  });
  if (combination == std::end(kCombinations)) return kCublasNotSupported;
  const kernels::ElementType in_type = *element_type(a_type);
  const DeviceDescription* device = nullptr;
  if (find_driver()->current_device(&device) != kSuccess) return kCublasExecutionFailed;
  if (device->capability() < first_capability(in_type)) return kCublasArchMismatch;
  if (in_type == kernels::ElementType::int8 && !is_aligned_for_int8(lda, ldb, a, b))
    return kCublasNotSupported;
  const Arithmetic how = arithmetic(*device, in_type, compute_type == kCompute32FFastTf32);
  if (!how.tflops) return kCublasNotSupported;
  if (m == 0 || n == 0 || batch.count == 0) return kCublasSuccess;

  Gemm gemm;
  gemm.transpose_a = op_a == kCublasOpT;
  gemm.transpose_b = op_b == kCublasOpT;
  gemm.m = static_cast<std::size_t>(m);
  gemm.n = static_cast<std::size_t>(n);
  gemm.k = static_cast<std::size_t>(k);
  gemm.alpha = kernels::load_element(alpha, 0, combination->scalar);
  gemm.beta = kernels::load_element(beta, 0, combination->scalar);
  gemm.a = a;
  gemm.b = b;
  gemm.c = c;
  gemm.a_type = gemm.b_type = in_type;
  gemm.out_type = *element_type(c_type);
  gemm.batch = static_cast<std::size_t>(batch.count);
  gemm.stride_a = static_cast<std::size_t>(batch.stride_a);
  gemm.stride_b = static_cast<std::size_t>(batch.stride_b);
  gemm.stride_c = static_cast<std::size_t>(batch.stride_c);
  gemm.lda = static_cast<std::size_t>(lda);
  gemm.ldb = static_cast<std::size_t>(ldb);
  gemm.ldc = static_cast<std::size_t>(ldc);
  gemm.tf32 = how.tf32;
  const double duration_ns = work_ns(2.0 * m * n * k * batch.count, *how.tflops);
  constexpr std::size_t kTile = 128;
  constexpr unsigned kThreads = 256;
  const std::string name = "fake_gemm_" + rate_name(in_type, how) + "_128x128";
  const KernelShape shape{
      kernel_name(name),
      {blocks_for(gemm.m, kTile), blocks_for(gemm.n, kTile), static_cast<unsigned>(batch.count)},
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

/// cublasGemmEx serves no such GPU, whatever the types: cuBLAS documentation.
bool is_before_maxwell() {
  const DeviceDescription* device = nullptr;
  return find_driver()->current_device(&device) == kSuccess && device->capability() < 50;
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
  if (is_before_maxwell()) return kCublasArchMismatch;
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

EXPORT CublasStatus cublasDgemm_v2(CublasHandle handle,
                                   int op_a,
                                   int op_b,
                                   int m,
                                   int n,
                                   int k,
                                   const double* alpha,
                                   const double* a,
                                   int lda,
                                   const double* b,
                                   int ldb,
                                   const double* beta,
                                   double* c,
                                   int ldc) {
  const double begin = now_ns();
  if (const CublasStatus status = enter("cublasDgemm_v2")) return status;
  return multiply(begin,
                  handle,
                  op_a,
                  op_b,
                  m,
                  n,
                  k,
                  alpha,
                  a,
                  kCudaR64F,
                  lda,
                  b,
                  kCudaR64F,
                  ldb,
                  beta,
                  c,
                  kCudaR64F,
                  ldc,
                  kCompute64F);
}

EXPORT CublasStatus cublasGemmStridedBatchedEx(CublasHandle handle,
                                               int op_a,
                                               int op_b,
                                               int m,
                                               int n,
                                               int k,
                                               const void* alpha,
                                               const void* a,
                                               int a_type,
                                               int lda,
                                               long long stride_a,
                                               const void* b,
                                               int b_type,
                                               int ldb,
                                               long long stride_b,
                                               const void* beta,
                                               void* c,
                                               int c_type,
                                               int ldc,
                                               long long stride_c,
                                               int batch,
                                               int compute_type,
                                               int) {
  const double begin = now_ns();
  if (const CublasStatus status = enter("cublasGemmStridedBatchedEx")) return status;
  if (is_before_maxwell()) return kCublasArchMismatch;
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
                  compute_type,
                  {batch, stride_a, stride_b, stride_c});
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
