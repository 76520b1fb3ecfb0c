#include "harness/device/cuda/cublas_types.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"

namespace launchgap::cuda {

/// cuBLAS 12 has no kernels below compute capability 5.0, and 13 none below 7.5 (their release
/// notes); and none runs on a driver of an older major.
int newest_cublas(int compute_capability) {
  const int driver = std::atoi(Driver::get().facts.version.c_str());
  return std::min(driver, compute_capability < 50 ? 11 : compute_capability < 75 ? 12 : 13);
}

std::string cublas_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void check_cublas(const LoadedLibrary& library,
                  abi::CublasStatus status,
                  const char* call,
                  const char* (*words_of)(abi::CublasStatus)) {
  if (status == abi::kCublasSuccess) return;
  const std::string text(call);
  const std::string name = text.substr(0, text.find('('));
  const std::string words = words_of ? words_of(status) : "";
  if (status == abi::kCublasNotSupported || status == abi::kCublasArchMismatch) {
    throw Unsupported(
        "{} {}: {} answers {} ({})", library.name, library.version, name, words, status);
  }
  // The context may be lost with it; only a call into the driver tells, and the next case makes
  // one.
  throw LibraryError(library.name, name, status, words, status == abi::kCublasExecutionFailed);
}

abi::CudaDataType data_type(ElementType type) {
  switch (type) {
    case ElementType::fp64:
      return abi::kCudaR64F;
    case ElementType::fp32:
      return abi::kCudaR32F;
    case ElementType::fp16:
      return abi::kCudaR16F;
    case ElementType::bf16:
      return abi::kCudaR16BF;
    case ElementType::int8:
      return abi::kCudaR8I;
    case ElementType::int32:
      return abi::kCudaR32I;
    case ElementType::fp8_e4m3:
      return abi::kCudaR8FE4m3;
    case ElementType::fp8_e5m2:
      return abi::kCudaR8FE5m2;
  }
  return abi::kCudaR32F;
}

Computation computation(Compute compute) {
  switch (compute) {
    case Compute::fp64:
      return {abi::kCompute64F, "COMPUTE_64F", ElementType::fp64};
    case Compute::fp32:
      return {abi::kCompute32F, "COMPUTE_32F", ElementType::fp32};
    case Compute::fp32_pedantic:
      return {abi::kCompute32FPedantic, "COMPUTE_32F_PEDANTIC", ElementType::fp32};
    case Compute::tf32:
      return {abi::kCompute32FFastTf32, "COMPUTE_32F_FAST_TF32", ElementType::fp32};
    case Compute::fp16:
      return {abi::kCompute16F, "COMPUTE_16F", ElementType::fp16};
    case Compute::int32:
      return {abi::kCompute32I, "COMPUTE_32I", ElementType::int32};
  }
  return {abi::kCompute32F, "COMPUTE_32F", ElementType::fp32};
}

}  // namespace launchgap::cuda
