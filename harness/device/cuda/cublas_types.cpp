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

// Both in the order of their enumerations.

abi::CudaDataType data_type(ElementType type) {
  constexpr abi::CudaDataType kTypes[] = {abi::kCudaR32F,
                                          abi::kCudaR16F,
                                          abi::kCudaR16BF,
                                          abi::kCudaR64F,
                                          abi::kCudaR8I,
                                          abi::kCudaR32I,
                                          abi::kCudaR8FE4m3,
                                          abi::kCudaR8FE5m2};
  return kTypes[static_cast<std::size_t>(type)];
}

Computation computation(Compute compute) {
  constexpr Computation kComputations[] = {
      {abi::kCompute64F, "COMPUTE_64F", ElementType::fp64},
      {abi::kCompute32F, "COMPUTE_32F", ElementType::fp32},
      {abi::kCompute32FPedantic, "COMPUTE_32F_PEDANTIC", ElementType::fp32},
      {abi::kCompute32FFastTf32, "COMPUTE_32F_FAST_TF32", ElementType::fp32},
      {abi::kCompute16F, "COMPUTE_16F", ElementType::fp16},
      {abi::kCompute32I, "COMPUTE_32I", ElementType::int32}};
  return kComputations[static_cast<std::size_t>(compute)];
}

}  // namespace launchgap::cuda
