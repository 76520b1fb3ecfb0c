// The fake libcuda.so.1: the functions of harness/device/cuda/abi/driver.h on the state of
// call.process.h. Here the driver, devices and contexts.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>
#include <limits>
#include <optional>
#include <unistd.h>
#include <utility>

#include "tests/fake_cuda/device_nodes.h"
#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

Result copy_text(char* to, int bytes, const std::string& text) {
  if (to == nullptr || bytes <= 0) return kInvalidValue;
  std::snprintf(to, static_cast<std::size_t>(bytes), "%s", text.c_str());
  return kSuccess;
}

Result get_uuid(Call& call, Uuid* uuid, Device device) {
  return with_device(call, device, [&](Context& context) -> Result {
    if (uuid == nullptr) return kInvalidValue;
    std::copy(
        context.description.uuid_bytes.begin(), context.description.uuid_bytes.end(), uuid->bytes);
    return kSuccess;
  });
}

/// Names and texts of the driver's codes.
struct ErrorName {
  int code;
  const char* name;
  const char* text;
};
#define X(code, name, text) \
  { code, "CUDA_ERROR_" #name, text }
constexpr ErrorName kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    X(1, INVALID_VALUE, "invalid argument"),
    X(2, OUT_OF_MEMORY, "out of memory"),
    X(3, NOT_INITIALIZED, "initialization error"),
    X(4, DEINITIALIZED, "driver shutting down"),
    X(34, STUB_LIBRARY, "CUDA driver is a stub library"),
    X(46, DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    X(100, NO_DEVICE, "no CUDA-capable device is detected"),
    X(101, INVALID_DEVICE, "invalid device ordinal"),
    X(200, INVALID_IMAGE, "device kernel image is invalid"),
    X(201, INVALID_CONTEXT, "invalid device context"),
    X(209, NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    X(214, ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    X(215, UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    X(218, INVALID_PTX, "a PTX JIT compilation failed"),
    X(220, NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution"),
    X(222, UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
    X(400, INVALID_HANDLE, "invalid resource handle"),
    X(401, ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    X(500, NOT_FOUND, "named symbol not found"),
    X(600, NOT_READY, "device not ready"),
    X(700, ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    X(702, LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    X(709, CONTEXT_IS_DESTROYED, "context is destroyed"),
    X(710, ASSERT, "device-side assert triggered"),
    X(714, HARDWARE_STACK_ERROR, "hardware stack error"),
    X(715, ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    X(716, MISALIGNED_ADDRESS, "misaligned address"),
    X(717, INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
    X(718, INVALID_PC, "invalid program counter"),
    X(719, LAUNCH_FAILED, "unspecified launch failure"),
    X(720, COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    X(800, NOT_PERMITTED, "operation not permitted"),
    X(801, NOT_SUPPORTED, "operation not supported"),
    X(802, SYSTEM_NOT_READY, "system not yet initialized"),
    X(803,
      SYSTEM_DRIVER_MISMATCH,
      "system has unsupported display driver / cuda driver combination"),
    X(804,
      COMPAT_NOT_SUPPORTED_ON_DEVICE,
      "forward compatibility was attempted on non supported HW"),
    X(900, STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    X(901, STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    X(902, STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    X(903, STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    X(904, STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    X(905, STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    X(906,
      STREAM_CAPTURE_IMPLICIT,
      "operation would make the legacy stream depend on a capturing blocking stream"),
    X(907,
      CAPTURED_EVENT,
      "operation not permitted on an event last recorded in a capturing stream"),
    X(908,
      STREAM_CAPTURE_WRONG_THREAD,
      "attempt to terminate a thread-local capture sequence from another thread"),
    X(910,
      GRAPH_EXEC_UPDATE_FAILURE,
      "the graph update was not performed because it included changes which violated constraints "
      "specific to instantiated graph update"),
    X(999, UNKNOWN, "unknown error"),
};
#undef X

Result report_error(Result code, const char* ErrorName::*which, const char** to) {
  if (to == nullptr) return kInvalidValue;
  const auto* const error = std::ranges::find(kErrors, code, &ErrorName::code);
  const bool known = error != std::end(kErrors);
  *to = known ? error->*which : nullptr;
  return known ? kSuccess : kInvalidValue;
}

/// None for one that the fake has not.
std::optional<int> attribute_value(const DeviceDescription& device, int attribute) {
  const LaunchDescription& launch = device.launch;
  const std::pair<int, int> values[] = {
      {kMaxThreadsPerBlock, 1024},
      {kMaxGridX, std::numeric_limits<int>::max()},
      {kWarpSize, 32},
      {kClockRateKhz, 1000 * device.clock_mhz},
      {kMultiprocessorCount, device.multiprocessors},
      {kIntegrated, 0},
      {kCanMapHostMemory, 1},
      {kComputeMode, 0},
      {kEccEnabled, 1},
      {kMemoryClockRateKhz, 1000 * device.memory_clock_mhz},
      {kGlobalMemoryBusWidth, device.memory_bus_bits},
      {kL2CacheBytes, device.l2_bytes},
      {kComputeCapabilityMajor, device.major},
      {kComputeCapabilityMinor, device.minor},
      {kThreadsPerMultiprocessor, launch.threads_per_multiprocessor},
      {kStreamPrioritiesSupported, launch.priorities[0] != launch.priorities[1]},
      {kCooperativeLaunchSupported, launch.cooperative},
      {kManagedMemorySupported, device.managed_memory != ManagedMemory::none},
      {kConcurrentManagedAccess, device.managed_memory == ManagedMemory::concurrent},
      {kVirtualMemorySupported, device.virtual_memory},
      {kMemoryPoolsSupported, device.memory_pools}};
  return found_in(values, attribute);
}

/// Loads the library that the environment names, once, and calls its entry. A driver says nothing
/// of one that it cannot load, and takes none for a program with others' rights.
void inject() {
  static std::atomic<pid_t> injected = 0;
  if (injected.exchange(getpid()) == getpid()) return;
  const char* const path = secure_getenv("CUDA_INJECTION64_PATH");
  void* const library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  if (library == nullptr) return;
  auto* const entry = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (entry != nullptr) entry();
}

}  // namespace

EXPORT Result cuInit(unsigned flags) {
  const Result result = [&] {
    Call call("cuInit");
    return with_process(call, [&]() -> Result {
      if (const Result code = call.fault(nullptr)) return code;
      return call.process.initialize(flags);
    });
  }();
  if (result == kSuccess) inject();
  return result;
}

EXPORT Result cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion");
  return with_process(call, [&]() -> Result {
    if (const Result code = call.fault(nullptr)) return code;
    return put(version, call.process.node()->driver_version);
  });
}

EXPORT Result cuGetErrorName(Result code, const char** name) {
  Call call("cuGetErrorName");
  return call.returns(report_error(code, &ErrorName::name, name));
}

EXPORT Result cuGetErrorString(Result code, const char** text) {
  Call call("cuGetErrorString");
  return call.returns(report_error(code, &ErrorName::text, text));
}

EXPORT Result cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount");
  return with_driver(call, [&] { return put(count, call.process.device_count()); });
}

EXPORT Result cuDeviceGet(Device* device, int ordinal) {
  Call call("cuDeviceGet");
  return with_device(call, ordinal, [&](Context&) { return put(device, ordinal); });
}

EXPORT Result cuDeviceGetName(char* name, int bytes, Device device) {
  Call call("cuDeviceGetName");
  return with_device(call, device, [&](Context& context) {
    return copy_text(name, bytes, context.description.name);
  });
}

EXPORT Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  Call call("cuDeviceGetUuid");
  return get_uuid(call, uuid, device);
}

EXPORT Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  Call call("cuDeviceGetUuid_v2");
  return get_uuid(call, uuid, device);
}

EXPORT Result cuDeviceTotalMem_v2(std::size_t* bytes, Device device) {
  Call call("cuDeviceTotalMem_v2");
  return with_device(
      call, device, [&](Context& context) { return put(bytes, context.description.memory_bytes); });
}

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  Call call("cuDeviceGetAttribute");
  return with_device(call, device, [&](Context& context) -> Result {
    const auto known = attribute_value(context.description, attribute);
    return known ? put(value, *known) : Result{kInvalidValue};
  });
}

EXPORT Result cuDeviceGetPCIBusId(char* text, int bytes, Device device) {
  Call call("cuDeviceGetPCIBusId");
  return with_device(call, device, [&](Context& context) {
    return copy_text(text, bytes, context.description.pci);
  });
}

EXPORT Result cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  Call call("cuDevicePrimaryCtxSetFlags_v2");
  return with_device(call, device, [&](Context& context) -> Result {
    constexpr unsigned kKnown = 0x1F;
    if ((flags & ~kKnown) != 0) return kInvalidValue;
    context.flags = flags;
    return kSuccess;
  });
}

EXPORT Result cuDevicePrimaryCtxRetain(abi::Context* handle, Device device) {
  Call call("cuDevicePrimaryCtxRetain");
  return with_device(call, device, [&](Context& context) -> Result {
    if (handle == nullptr) return kInvalidValue;
    if (context.sticky != kSuccess) return context.sticky;
    *handle = reinterpret_cast<abi::Context>(&context);
    if (context.references++ > 0) return kSuccess;
    context.id = call.process.next_context_id();
    map_device_nodes(context.index);
    if (context.would_be_far()) context.factor *= context.description.launch.placement->far_factor;
    const double end = now_ns() + context.description.context_ns(context.random);
    context.busy_until_ns = end;
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(Device device) {
  Call call("cuDevicePrimaryCtxRelease_v2");
  return with_device(call, device, [&](Context& context) -> Result {
    if (context.references == 0) return kInvalidContext;
    if (--context.references == 0) call.process.tear_down(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxSetCurrent(abi::Context handle) {
  Call call("cuCtxSetCurrent");
  return with_process(call, [&]() -> Result {
    if (!call.process.initialized()) return kNotInitialized;
    Context* const context = call.process.context_of(handle);
    if (const Result code = call.fault(context)) return code;
    if (handle != nullptr && context == nullptr) return kInvalidContext;
    call.process.set_current(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cuCtxGetStreamPriorityRange");
  return with_context(call, [&](Context& context) -> Result {
    if (least != nullptr) *least = context.description.launch.priorities[0];
    if (greatest != nullptr) *greatest = context.description.launch.priorities[1];
    return kSuccess;
  });
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
// Each is defined somewhere, or this library does not link.
#define LAUNCHGAP_DEFINED(name, required, ...) reinterpret_cast<void*>(&(name)),
[[maybe_unused, gnu::used]] static void* const defined[] = {
    LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_DEFINED)};
#undef LAUNCHGAP_DEFINED
}  // namespace launchgap::cuda::abi
