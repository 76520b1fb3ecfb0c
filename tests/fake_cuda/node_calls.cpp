// The exported functions of every fake, by library.
#include <map>

#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/cuda/abi/cublaslt.h"
#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/cudnn_backend.h"
#include "harness/device/cuda/abi/driver.h"
#include "harness/device/cuda/abi/nccl.h"
#include "harness/device/cuda/abi/nvml.h"
#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/node.h"

namespace launchgap::fake {
namespace {

using Calls = std::set<std::string, std::less<>>;

template <typename Signature>
constexpr bool kReturnsStatus = false;
template <typename... Arguments>
constexpr bool kReturnsStatus<int(Arguments...)> = true;

#define LAUNCHGAP_NAME(name, required, ...) \
  if (kReturnsStatus<__VA_ARGS__>) calls.insert(#name);
// A function per library: the interfaces have equal names.
#define LAUNCHGAP_CALLS(which, interface, ...) \
  void add_##which(Calls& calls) {             \
    using namespace interface;                 \
    __VA_ARGS__                                \
  }
LAUNCHGAP_CALLS(cuda, cuda::abi, LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_NAME))
// cuBLASLt's too: one library brings both.
LAUNCHGAP_CALLS(cublas,
                cuda::abi,
                LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_NAME)
                    LAUNCHGAP_CUBLASLT_FUNCTIONS(LAUNCHGAP_NAME))
LAUNCHGAP_CALLS(cudnn,
                cuda::abi,
                LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_NAME)
                    LAUNCHGAP_CUDNN_BACKEND_FUNCTIONS(LAUNCHGAP_NAME))
LAUNCHGAP_CALLS(cupti, cupti::abi, LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_NAME))
LAUNCHGAP_CALLS(nccl, cuda::abi, LAUNCHGAP_NCCL_FUNCTIONS(LAUNCHGAP_NAME))
LAUNCHGAP_CALLS(nvml, cuda::nvml, LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_NAME))
#undef LAUNCHGAP_CALLS
#undef LAUNCHGAP_NAME

}  // namespace

const std::set<std::string, std::less<>>& calls_of(Library library) {
  // Never destroyed: a description may be read late.
  static auto& all = *new std::map<Library, Calls>;
  if (all.empty()) {
    add_cuda(all[Library::cuda]);
    add_cublas(all[Library::cublas]);
    add_cudnn(all[Library::cudnn]);
    add_cupti(all[Library::cupti]);
    add_nccl(all[Library::nccl]);
    add_nvml(all[Library::nvml]);
  }
  return all.at(library);
}

}  // namespace launchgap::fake
