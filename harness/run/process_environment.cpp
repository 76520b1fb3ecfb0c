#include "harness/run/process_environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace launchgap {
namespace {

constexpr FalsifyingVariable kFalsifying[] = {
    {"CUDA_LAUNCH_BLOCKING", "each launch waits for its kernel"},
    {"CUDA_FORCE_PTX_JIT", "native kernels are not used, whatever kernel_form says"},
    {"CUDA_FORCE_JIT", "native kernels are not used, whatever kernel_form says"},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "a kernel that fails waits for a debugger"},
    {"NVIDIA_TF32_OVERRIDE", "FP32 and TF32 are no longer different types"},
    {"CUBLAS_EMULATE_SINGLE_PRECISION", "FP32 products are put together from BF16 ones"},
    {"CUBLAS_EMULATE_DOUBLE_PRECISION", "FP64 products are put together from integer ones"},
    {"CUBLAS_EMULATION_STRATEGY", "decides where products are emulated"},
    {"CUBLAS_LOGINFO_DBG", "each call of cuBLAS writes a log"},
    {"CUBLASLT_LOG_LEVEL", "each call of cuBLASLt writes a log"},
    {"CUBLASLT_LOG_MASK", "each call of cuBLASLt writes a log"},
    {"CUDNN_LOGINFO_DBG", "each call of cuDNN writes a log"},
    {"CUDNN_LOGLEVEL_DBG", "each call of cuDNN writes a log"},
};

/// Says where things are or what a container may see.
bool is_a_place(const std::string& name) {
  return name.ends_with("_HOME") || name.ends_with("_PATH") || name.starts_with("NVIDIA_");
}

}  // namespace

std::span<const FalsifyingVariable> falsifying_variables() {
  return kFalsifying;
}

Variables remove_falsifying_variables() {
  Variables removed;
  for (const FalsifyingVariable& variable : kFalsifying) {
    const char* const value = std::getenv(variable.name);
    if (!value) continue;
    removed[variable.name] = value;
    unsetenv(variable.name);
  }
  return removed;
}

Variables environment_of_libraries() {
  constexpr std::string_view kPrefixes[] = {"CUDA_",
                                            "CUBLAS",
                                            "CUDNN_",
                                            "NVIDIA_",
                                            "OMP_",
                                            "GOMP_",
                                            "KMP_",
                                            "OPENBLAS_",
                                            "DNNL_",
                                            "ONEDNN_",
                                            "MALLOC_",
                                            "GLIBC_TUNABLES",
                                            "LD_PRELOAD",
                                            "LAUNCHGAP_KERNELS",
                                            "LAUNCHGAP_WARM_UP"};
  Variables found;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool chosen_by_parent = name == "CUDA_VISIBLE_DEVICES";
    if (!chosen_by_parent && std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
          return name.starts_with(prefix);
        })) {
      found[std::string(name)] = text.substr(std::min(text.size(), name.size() + 1));
    }
  }
  return found;
}

Variables environment_to_compare(const Variables& of_libraries) {
  Variables compared;
  for (const auto& [name, value] : of_libraries) {
    if (!is_a_place(name)) compared[name] = value;
  }
  return compared;
}

}  // namespace launchgap
