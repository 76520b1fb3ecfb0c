// The plugin of runtime_plugin.h, built by nvcc with the runtime linked statically.
#include <cuda_runtime.h>

#include "runtime_plugin.h"

namespace {

__global__ void null_kernel() {}
__global__ void counting_kernel(unsigned* counter) {
  *counter += 1;
}

/// Loads what first launches would load.
int prepare() {
  cudaFuncAttributes attributes;
  cudaError_t code = cudaFuncGetAttributes(&attributes, null_kernel);
  if (code == cudaSuccess) code = cudaFuncGetAttributes(&attributes, counting_kernel);
  if (code != cudaSuccess) cudaGetLastError();
  return code;
}

int launch_chevron(void* stream) {
  null_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
  return cudaGetLastError();
}
int count_chevron(void* stream, unsigned* counter) {
  counting_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(counter);
  return cudaGetLastError();
}

cudaError_t launch_ex(const void* kernel, void* stream, void** arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
int launch_ex(void* stream) {
  return launch_ex(reinterpret_cast<const void*>(null_kernel), stream, nullptr);
}
int count_ex(void* stream, unsigned* counter) {
  void* arguments[] = {&counter};
  return launch_ex(reinterpret_cast<const void*>(counting_kernel), stream, arguments);
}

const char* name(int code) {
  return cudaGetErrorName(static_cast<cudaError_t>(code));
}
const char* text(int code) {
  return cudaGetErrorString(static_cast<cudaError_t>(code));
}

const LaunchgapRuntimePlugin plugin =
    {CUDART_VERSION, prepare, launch_chevron, launch_ex, count_chevron, count_ex, name, text};

}  // namespace

extern "C" __attribute__((visibility("default"))) const LaunchgapRuntimePlugin*
launchgap_runtime_plugin_1() {
  return &plugin;
}
