// The fake libcublas: products computed on the host, laid on the fake driver's streams.
#include "harness/device/cuda/abi/cublas.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unistd.h>
#include <vector>

#include "tests/fake_cuda/multiply.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

struct Handle {
  Stream stream = nullptr;
  std::optional<std::size_t> workspace_bytes;  // of the caller's; none: the library's own
  std::vector<Stream> streams;                 // in which it has used its own, in that order
  std::optional<Stream> last;                  // in which it has used its own last
};

/// With less of a workspace a product may fail to allocate.
constexpr std::size_t kLeastWorkspace = 16 << 10;
constexpr std::size_t kWorkspaceAlignment = 256;

/// cublasGemmEx serves no such GPU, whatever the types: cuBLAS documentation.
bool is_before_maxwell() {
  const DeviceDescription* const device = current_device();
  return device != nullptr && device->capability() < 50;
}

}  // namespace

EXPORT CublasStatus cublasCreate_v2(CublasHandle* handle) {
  return create_handle<Handle>("cublasCreate_v2", handle);
}

EXPORT CublasStatus cublasDestroy_v2(CublasHandle handle) {
  const CublasStatus status = destroy<Handle>("cublasDestroy_v2", handle);
  return status == kCublasSuccess && handle == nullptr ? kCublasNotInitialized : status;
}

EXPORT CublasStatus cublasGetVersion_v2(CublasHandle, int* version) {
  if (const CublasStatus status = enter_cublas("cublasGetVersion_v2")) return status;
  return put(version, find_driver()->node()->cublas_version, kCublasInvalidValue);
}

EXPORT CublasStatus cublasSetStream_v2(CublasHandle handle, Stream stream) {
  if (const CublasStatus status = enter_cublas("cublasSetStream_v2")) return status;
  if (handle == nullptr) return kCublasNotInitialized;
  as<Handle>(handle)->stream = stream;
  as<Handle>(handle)->workspace_bytes.reset();
  return kCublasSuccess;
}

EXPORT CublasStatus cublasSetWorkspace_v2(CublasHandle handle, void* workspace, std::size_t bytes) {
  if (const CublasStatus status = enter_cublas("cublasSetWorkspace_v2")) return status;
  if (handle == nullptr) return kCublasNotInitialized;
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return kCublasInvalidValue;
  as<Handle>(handle)->workspace_bytes = bytes;
  return kCublasSuccess;
}

EXPORT const char* cublasGetStatusString(CublasStatus status) {
  return status_text(status);
}

EXPORT CublasStatus cublasSetMathMode(CublasHandle handle, int) {
  if (const CublasStatus status = enter_cublas("cublasSetMathMode")) return status;
  return handle == nullptr ? kCublasNotInitialized : kCublasSuccess;
}

namespace {

/// In which order a handle's products are added; none: as always.
std::optional<int> order_of(Handle& handle) {
  const auto default_bytes = [] {
    const DeviceDescription* const device = current_device();
    const bool large = device != nullptr && device->capability() >= 90;
    return std::size_t{large ? 32u << 20 : 4u << 20};
  };
  switch (find_driver()->node()->cublas_varies) {
    case CublasVaries::never:
      return std::nullopt;
    case CublasVaries::runs:
      return getpid();
    case CublasVaries::streams: {
      if (handle.workspace_bytes) return std::nullopt;
      auto used = std::find(handle.streams.begin(), handle.streams.end(), handle.stream);
      if (used == handle.streams.end())
        used = handle.streams.insert(handle.streams.end(), handle.stream);
      const auto number = static_cast<int>(used - handle.streams.begin());
      return number == 0 ? std::nullopt : std::optional(number);
    }
    case CublasVaries::workspace: {
      const std::size_t bytes = handle.workspace_bytes.value_or(default_bytes());
      if (bytes == default_bytes()) return std::nullopt;
      return static_cast<int>(bytes >> 10);
    }
  }
  return std::nullopt;
}

/// By the default algorithm, as slow as the node says, or by the best one.
CublasStatus multiply(double begin, CublasHandle handle, int algorithm, const MatrixProduct& p) {
  if (handle == nullptr) return kCublasNotInitialized;
  if (algorithm != kGemmDefault && algorithm != kGemmAutotune) return kCublasInvalidValue;
  ProductAlgorithm how;
  const std::vector<double>& candidates = find_driver()->node()->cublaslt_candidates;
  how.slowdown = algorithm == kGemmDefault
                     ? candidates.front()
                     : *std::min_element(candidates.begin(), candidates.end());
  Handle& own = *as<Handle>(handle);
  if (own.workspace_bytes.value_or(kLeastWorkspace) < kLeastWorkspace) return kCublasAllocFailed;
  if (!own.workspace_bytes) {
    // Some products wait where the handle used its own workspace in another stream (seen with
    // cuBLAS 13.1 on an H200), and where they do not, their order may vary.
    const bool waits = p.a_type == kCudaR32F && p.compute_type == kCompute32F &&
                       find_driver()->node()->cublas_varies != CublasVaries::streams;
    if (own.last && own.last != own.stream && waits && find_driver()->wait() != kSuccess)
      return kCublasExecutionFailed;
    own.last = own.stream;
  }
  how.other_order = order_of(own);
  return multiply(begin, own.stream, p, how);
}

}  // namespace

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
                                 int algorithm) {
  const double begin = now_ns();
  if (const CublasStatus status = enter_cublas("cublasGemmEx")) return status;
  if (is_before_maxwell()) return kCublasArchMismatch;
  const MatrixProduct product{op_a,
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
                              compute_type};
  return multiply(begin, handle, algorithm, product);
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
                                               int algorithm) {
  const double begin = now_ns();
  if (const CublasStatus status = enter_cublas("cublasGemmStridedBatchedEx")) return status;
  if (is_before_maxwell()) return kCublasArchMismatch;
  const MatrixProduct product{
      op_a, op_b, m, n,      k,   alpha,        a,     a_type,   lda,      b,       b_type,
      ldb,  beta, c, c_type, ldc, compute_type, batch, stride_a, stride_b, stride_c};
  return multiply(begin, handle, algorithm, product);
}

// One for each type that has a call of its own.
#define LAUNCHGAP_FAKE_GEMM(name, Scalar, type, compute)                                        \
  EXPORT CublasStatus name(CublasHandle handle,                                                 \
                           int op_a,                                                            \
                           int op_b,                                                            \
                           int m,                                                               \
                           int n,                                                               \
                           int k,                                                               \
                           const Scalar* alpha,                                                 \
                           const Scalar* a,                                                     \
                           int lda,                                                             \
                           const Scalar* b,                                                     \
                           int ldb,                                                             \
                           const Scalar* beta,                                                  \
                           Scalar* c,                                                           \
                           int ldc) {                                                           \
    const double begin = now_ns();                                                              \
    if (const CublasStatus status = enter_cublas(#name)) return status;                         \
    return multiply(                                                                            \
        begin,                                                                                  \
        handle,                                                                                 \
        kGemmDefault,                                                                           \
        {op_a, op_b, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, compute}); \
  }
LAUNCHGAP_FAKE_GEMM(cublasSgemm_v2, float, kCudaR32F, kCompute32F)
LAUNCHGAP_FAKE_GEMM(cublasDgemm_v2, double, kCudaR64F, kCompute64F)
#undef LAUNCHGAP_FAKE_GEMM

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
