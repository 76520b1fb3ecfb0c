#include "harness/run/settings.h"

#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"

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

template <class Value, std::size_t count>
void set(Value& value,
         std::string_view setup,
         std::string_view name,
         const std::pair<std::string_view, Value> (&choices)[count]) {
  const auto text = setting_of(setup, name);
  if (!text) return;
  for (const auto& [choice, meaning] : choices) {
    if (*text == choice) {
      value = meaning;
      return;
    }
  }
  throw UsageError(fmt::format("setup '{}' has no value '{}' of {}", setup, *text, name));
}

}  // namespace

std::span<const FalsifyingVariable> falsifying_variables() {
  return kFalsifying;
}

OpenOptions open_options(std::string_view setup, const std::string& jit_cache) {
  OpenOptions options;
  options.jit_cache = jit_cache;
  set(options.wait,
      setup,
      "wait",
      {std::pair<std::string_view, WaitMode>{"spin", WaitMode::spin},
       {"yield", WaitMode::yield},
       {"block", WaitMode::block}});
  set(options.loading,
      setup,
      "loading",
      {std::pair<std::string_view, CodeLoading>{"none", CodeLoading::unchanged},
       {"lazy", CodeLoading::lazy},
       {"eager", CodeLoading::eager},
       {"jit_warming", CodeLoading::jit_warming},
       {"jit_cached", CodeLoading::jit_cached},
       {"jit_uncached", CodeLoading::jit_uncached}});
  return options;
}

}  // namespace launchgap
