// The fake libcuda.so.1: the functions of harness/device/cuda/abi/driver.h on the state of
// process.h. Here the driver, devices and contexts.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "tests/fake_cuda/device_nodes.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/error_names.h"

/// Marks whatever runs on this library as simulated.
EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

Result copy_text(char* to, int bytes, const std::string& text) {
  if (to == nullptr || bytes <= 0) return kInvalidValue;
  std::snprintf(to, static_cast<std::size_t>(bytes), "%s", text.c_str());
  return kSuccess;
}

Result get_uuid(Call& call, Uuid* uuid, Device device) {
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (uuid == nullptr) return kInvalidValue;
    std::copy(
        context.description.uuid_bytes.begin(), context.description.uuid_bytes.end(), uuid->bytes);
    return kSuccess;
  });
}

int attribute_value(const DeviceDescription& device, int attribute, Result& status) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kMaxGridX:
      return std::numeric_limits<int>::max();
    case kWarpSize:
      return 32;
    case kClockRateKhz:
      return 1000 * device.clock_mhz;
    case kMultiprocessorCount:
      return device.multiprocessors;
    case kIntegrated:
      return 0;
    case kCanMapHostMemory:
      return 1;
    case kComputeMode:
      return 0;
    case kEccEnabled:
      return 1;
    case kMemoryClockRateKhz:
      return 1000 * device.memory_clock_mhz;
    case kGlobalMemoryBusWidth:
      return device.memory_bus_bits;
    case kL2CacheBytes:
      return device.l2_bytes;
    case kComputeCapabilityMajor:
      return device.major;
    case kComputeCapabilityMinor:
      return device.minor;
    case kThreadsPerMultiprocessor:
      return device.launch.threads_per_multiprocessor;
    case kStreamPrioritiesSupported:
      return device.launch.least_priority != device.launch.greatest_priority ? 1 : 0;
    case kCooperativeLaunchSupported:
      return device.launch.cooperative ? 1 : 0;
    case kManagedMemorySupported:
      return device.managed_memory != ManagedMemory::none ? 1 : 0;
    case kConcurrentManagedAccess:
      return device.managed_memory == ManagedMemory::concurrent ? 1 : 0;
    case kVirtualMemorySupported:
      return device.virtual_memory ? 1 : 0;
    case kMemoryPoolsSupported:
      return device.memory_pools ? 1 : 0;
    default:
      status = kInvalidValue;
      return 0;
  }
}

}  // namespace

EXPORT Result cuInit(unsigned flags) {
  Call call("cuInit");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (process.node() == nullptr) return kUnknown;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), nullptr)) return code;
    return process.initialize(flags);
  });
}

EXPORT Result cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (process.node() == nullptr) return kUnknown;
    if (const Result code = process.fault(lock, Library::cuda, call.name(), nullptr)) return code;
    if (version == nullptr) return kInvalidValue;
    *version = process.node()->driver_version;
    return kSuccess;
  });
}

EXPORT Result cuGetErrorName(Result code, const char** name) {
  Call call("cuGetErrorName");
  if (name == nullptr) return call.returns(kInvalidValue);
  const ErrorName* const error = find_error(code);
  *name = error != nullptr ? error->name : nullptr;
  return call.returns(error != nullptr ? kSuccess : kInvalidValue);
}

EXPORT Result cuGetErrorString(Result code, const char** text) {
  Call call("cuGetErrorString");
  if (text == nullptr) return call.returns(kInvalidValue);
  const ErrorName* const error = find_error(code);
  *text = error != nullptr ? error->text : nullptr;
  return call.returns(error != nullptr ? kSuccess : kInvalidValue);
}

EXPORT Result cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount");
  return with_driver(call, [&](Process& process) -> Result {
    if (count == nullptr) return kInvalidValue;
    *count = process.device_count();
    return kSuccess;
  });
}

EXPORT Result cuDeviceGet(Device* device, int ordinal) {
  Call call("cuDeviceGet");
  return with_device(call, ordinal, [&](Process&, Lock&, Context&) -> Result {
    if (device == nullptr) return kInvalidValue;
    *device = ordinal;
    return kSuccess;
  });
}

EXPORT Result cuDeviceGetName(char* name, int bytes, Device device) {
  Call call("cuDeviceGetName");
  return with_device(call, device, [&](Process&, Lock&, Context& context) {
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
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (bytes == nullptr) return kInvalidValue;
    *bytes = context.description.memory_bytes;
    return kSuccess;
  });
}

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  Call call("cuDeviceGetAttribute");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    if (value == nullptr) return kInvalidValue;
    Result status = kSuccess;
    *value = attribute_value(context.description, attribute, status);
    return status;
  });
}

EXPORT Result cuDeviceGetPCIBusId(char* text, int bytes, Device device) {
  Call call("cuDeviceGetPCIBusId");
  return with_device(call, device, [&](Process&, Lock&, Context& context) {
    return copy_text(text, bytes, context.description.pci);
  });
}

EXPORT Result cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  Call call("cuDevicePrimaryCtxSetFlags_v2");
  return with_device(call, device, [&](Process&, Lock&, Context& context) -> Result {
    constexpr unsigned kKnown = 0x1F;
    if ((flags & ~kKnown) != 0) return kInvalidValue;
    context.flags = flags;
    return kSuccess;
  });
}

EXPORT Result cuDevicePrimaryCtxRetain(abi::Context* handle, Device device) {
  Call call("cuDevicePrimaryCtxRetain");
  return with_device(call, device, [&](Process& process, Lock& lock, Context& context) -> Result {
    if (handle == nullptr) return kInvalidValue;
    if (context.sticky != kSuccess) return context.sticky;
    *handle = reinterpret_cast<abi::Context>(&context);
    if (context.references++ > 0) return kSuccess;
    context.id = process.next_context_id();
    map_device_nodes(context.index);
    if (context.would_be_far()) context.factor *= context.description.launch.placement->far_factor;
    const double end = now_ns() + context.description.context_ns(context.random);
    context.busy_until_ns = end;
    lock.unlock();
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(Device device) {
  Call call("cuDevicePrimaryCtxRelease_v2");
  return with_device(call, device, [&](Process& process, Lock&, Context& context) -> Result {
    if (context.references == 0) return kInvalidContext;
    if (--context.references == 0) process.tear_down(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxSetCurrent(abi::Context handle) {
  Call call("cuCtxSetCurrent");
  return with_process(call, [&](Process& process, Lock& lock) -> Result {
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.context_of(handle);
    if (const Result code = process.fault(lock, Library::cuda, call.name(), context)) return code;
    if (handle != nullptr && context == nullptr) return kInvalidContext;
    process.set_current(context);
    return kSuccess;
  });
}

EXPORT Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cuCtxGetStreamPriorityRange");
  return with_context(call, [&](Process&, Lock&, Context& context) -> Result {
    if (least != nullptr) *least = context.description.launch.least_priority;
    if (greatest != nullptr) *greatest = context.description.launch.greatest_priority;
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
