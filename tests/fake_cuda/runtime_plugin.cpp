// The fake of the plugin that nvcc builds around the CUDA runtime: its launches on the fake driver.
#include "harness/device/cuda/runtime_plugin.h"

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {
namespace {

constexpr int kInsufficientDriver = 35;  // cudaErrorInsufficientDriver
constexpr int kRuntimeVersion = 13000;

struct RuntimeError {
  int code;
  const char* name;
  const char* text;
};
constexpr RuntimeError kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {kInsufficientDriver,
     "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {901,
     "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};

const RuntimeError& error(int code) {
  static constexpr RuntimeError kUnknown{999, "cudaErrorUnrecognized", "unrecognized error code"};
  for (const auto& error : kErrors) {
    if (error.code == code) return error;
  }
  return kUnknown;
}

int prepare() {
  Driver* const driver = find_driver();
  if (driver == nullptr) return kInsufficientDriver;
  const DeviceDescription* device = nullptr;
  if (const int code = driver->current_device(&device)) return code;
  return device->launch.runtime ? 0 : kInsufficientDriver;
}

template <LibraryCaller how>
int launch(void* stream, const char* name, Operation operation) {
  const double begin = now_ns();
  if (const int code = prepare()) return code;
  const KernelShape shape{name, {1, 1, 1}, {1, 1, 1}, 0};
  return find_driver()->launch(
      how, static_cast<abi::Stream>(stream), begin, {{shape, 1}}, 0, std::move(operation));
}

template <LibraryCaller how>
int launch_null(void* stream) {
  return launch<how>(stream, "null_kernel", {});
}

template <LibraryCaller how>
int launch_counting(void* stream, unsigned* counter) {
  Operation count;
  count.reads = count.writes = {range_of(counter, sizeof *counter)};
  count.compute = [counter](std::size_t, std::size_t) { *counter += 1; };
  return launch<how>(stream, "counting_kernel", std::move(count));
}

const LaunchgapRuntimePlugin kPlugin{kRuntimeVersion,
                                     prepare,
                                     launch_null<LibraryCaller::chevron>,
                                     launch_null<LibraryCaller::launch_ex>,
                                     launch_counting<LibraryCaller::chevron>,
                                     launch_counting<LibraryCaller::launch_ex>,
                                     [](int code) { return error(code).name; },
                                     [](int code) { return error(code).text; }};

}  // namespace
}  // namespace launchgap::fake

EXPORT const LaunchgapRuntimePlugin* launchgap_runtime_plugin_1() {
  return &launchgap::fake::kPlugin;
}
