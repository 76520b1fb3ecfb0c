// What the fake cuBLAS and cuBLASLt have in common: which products there are, and computing one.
#pragma once

#include <optional>

#include "harness/device/cuda/abi/cublas.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// A product as both libraries describe it: column-major C (m x n) = alpha op(A) op(B) + beta C, in
/// types of CudaDataType and CublasComputeType.
struct MatrixProduct {
  int op_a = 0, op_b = 0;
  int m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  int a_type = 0, lda = 0;
  const void* b = nullptr;
  int b_type = 0, ldb = 0;
  const void* beta = nullptr;
  void* c = nullptr;
  int c_type = 0, ldc = 0;
  int compute_type = 0;
  int batch = 1;
  long long stride_a = 0, stride_b = 0, stride_c = 0;
};

/// How one of a library's algorithms computes it.
struct ProductAlgorithm {
  double slowdown = 1;           // against the fastest
  const char* tile = "128x128";  // in the kernel's name
  bool wrong = false;            // one element of its result
  bool is_lt = false;            // FP8 is cuBLASLt's alone
  /// Some elements that are no integers have another last bit, others for another number; none: all
  /// are as they should be. Integers are summed exactly in any order.
  std::optional<int> other_order;
};

/// What every call does first; the status that it has to return, if it is not kCublasSuccess.
cuda::abi::CublasStatus enter_cublas(const char* call);

/// A handle or descriptor that is `made`.
template <class T, class Opaque>
cuda::abi::CublasStatus create(const char* call, Opaque** handle, const T& made) {
  if (const auto status = enter_cublas(call)) return status;
  if (handle == nullptr) return cuda::abi::kCublasInvalidValue;
  *handle = reinterpret_cast<Opaque*>(new T(made));
  return cuda::abi::kCublasSuccess;
}
/// The same of a library's handle, which needs a device.
template <class T, class Opaque>
cuda::abi::CublasStatus create_handle(const char* call, Opaque** handle) {
  if (const auto status = enter_cublas(call)) return status;
  if (current_device() == nullptr) return cuda::abi::kCublasNotInitialized;
  if (handle == nullptr) return cuda::abi::kCublasInvalidValue;
  find_driver()->load_library(Library::cublas);
  *handle = reinterpret_cast<Opaque*>(new T());
  return cuda::abi::kCublasSuccess;
}

template <class T, class Opaque>
cuda::abi::CublasStatus destroy(const char* call, Opaque* handle) {
  if (const auto status = enter_cublas(call)) return status;
  delete as<T>(handle);
  return cuda::abi::kCublasSuccess;
}

/// "CUBLAS_STATUS_SUCCESS".
const char* status_text(cuda::abi::CublasStatus status);

/// What the real library would answer before it looks at addresses.
cuda::abi::CublasStatus check_product(const MatrixProduct& product, bool is_lt);

/// Lays it on the stream, for a call that began at `begin_ns`.
cuda::abi::CublasStatus multiply(double begin_ns,
                                 cuda::abi::Stream stream,
                                 const MatrixProduct& product,
                                 const ProductAlgorithm& algorithm);

}  // namespace launchgap::fake
