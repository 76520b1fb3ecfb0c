// The CUDA runtime's two ways to launch, behind a plugin: a shared library that nvcc builds from
// runtime_plugin.cu, with the runtime linked into it. It is the only place that knows cudart, so
// launchgap itself goes on to need no CUDA at link time.
//
// The plugin launches one kernel that does nothing, as <<<1, 1>>>, in the primary context that is
// current on the calling thread. All functions return a cudaError_t; none throws.
#pragma once

extern "C" {

struct LaunchgapRuntimePlugin {
  int runtime_version;  // CUDART_VERSION of the build, as 13000
  /// Binds to the current context and loads the kernel; before any launch. An error here says why
  /// the runtime cannot be used: an older driver, or a GPU that its toolkit has dropped.
  int (*prepare)();
  /// kernel<<<1, 1, 0, stream>>>(), and what it left as last error. `stream` is a CUstream.
  int (*launch_chevron)(void* stream);
  /// cudaLaunchKernelExC without attributes.
  int (*launch_ex)(void* stream);
  /// Launch a kernel that adds one to *counter, on the device, in either way.
  int (*count_chevron)(void* stream, unsigned* counter);
  int (*count_ex)(void* stream, unsigned* counter);
  /// "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version".
  const char* (*name)(int code);
  const char* (*text)(int code);
};

/// The one symbol of the plugin; its name changes when the structure does.
const LaunchgapRuntimePlugin* launchgap_runtime_plugin_1();

}  // extern "C"

namespace launchgap::cuda {
using RuntimePlugin = ::LaunchgapRuntimePlugin;
inline constexpr auto kRuntimePluginFile = "liblaunchgap_runtime.so";
inline constexpr auto kRuntimePluginSymbol = "launchgap_runtime_plugin_1";
}  // namespace launchgap::cuda
