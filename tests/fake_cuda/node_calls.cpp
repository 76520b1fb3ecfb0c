// The exported functions of every fake, by library.
#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/cuda/abi/cublaslt.h"
#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/cudnn_backend.h"
#include "harness/device/cuda/abi/driver.h"
#include "harness/device/cuda/abi/nvml.h"
#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

using Calls = std::set<std::string, std::less<>>;

template <typename Signature>
constexpr bool kReturnsStatus = false;
template <typename... Arguments>
constexpr bool kReturnsStatus<int(Arguments...)> = true;

#define LAUNCHGAP_NAME(name, required, ...) \
  if (kReturnsStatus<__VA_ARGS__>) calls.insert(#name);

Calls cuda_calls() {
  using namespace launchgap::cuda::abi;
  Calls calls;
  LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_NAME)
  return calls;
}

/// cuBLASLt's too: one library brings both.
Calls cublas_calls() {
  using namespace launchgap::cuda::abi;
  Calls calls;
  LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_NAME)
  LAUNCHGAP_CUBLASLT_FUNCTIONS(LAUNCHGAP_NAME)
  return calls;
}

Calls cudnn_calls() {
  using namespace launchgap::cuda::abi;
  Calls calls;
  LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_NAME)
  LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LAUNCHGAP_NAME)
  return calls;
}

Calls cupti_calls() {
  using namespace launchgap::cupti::abi;
  Calls calls;
  LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_NAME)
  return calls;
}

Calls nvml_calls() {
  using namespace launchgap::cuda::nvml;
  Calls calls;
  LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_NAME)
  return calls;
}

#undef LAUNCHGAP_NAME

}  // namespace

const std::set<std::string, std::less<>>& calls_of(Library library) {
  // Never destroyed: a description may be read late.
  static const auto& calls = *new std::map<Library, Calls>{{Library::cuda, cuda_calls()},
                                                           {Library::cublas, cublas_calls()},
                                                           {Library::cudnn, cudnn_calls()},
                                                           {Library::cupti, cupti_calls()},
                                                           {Library::nvml, nvml_calls()}};
  return calls.at(library);
}

}  // namespace launchgap::fake
