// What the functions of the fake libnvidia-ml share: the process's view of the node.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <type_traits>
#include <unistd.h>

#include "harness/device/cuda/abi/nvml.h"
#include "tests/fake_cuda/faults.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

using namespace cuda::nvml;

using Result = cuda::nvml::Result;

constexpr Result kInvalidArgument = 2;

// A definition with another signature than the harness calls does not compile.
#define LAUNCHGAP_DECLARE(name, required, ...) EXPORT std::type_identity_t<__VA_ARGS__> name;
LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_DECLARE)
#undef LAUNCHGAP_DECLARE

/// The process's view of the node.
class Nvml {
 public:
  static Nvml& instance() {
    static auto* const nvml = new Nvml;
    return *nvml;
  }

  /// Null when the description is unusable.
  const Node* node() {
    const std::lock_guard lock(mutex_);
    return node_.get();
  }

  /// Counts a call against the faults: hangs, aborts, or returns the code that it must return.
  Result fault(const char* call, int device) {
    if (node() == nullptr) return kUnknown;
    const FaultDescription* fault = nullptr;
    {
      const std::lock_guard lock(mutex_);
      fault = node_.faults().next_call(Library::nvml, call, device);
    }
    if (fault == nullptr) return kSuccess;
    fault->act();
    return *fault->code;
  }

  std::atomic<bool> initialized = false;

  /// Index of the device behind a handle; negative for what is none.
  int index_of(Device device) {
    const auto& devices = node_.get()->devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (static_cast<const void*>(&devices[i]) == device) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  std::mutex mutex_;
  LoadedNode node_;
};

/// A call about a device: body(its description).
template <typename Body>
Result with_device(const char* call, Device handle, Body body) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized) return kUninitialized;
  const int index = nvml.index_of(handle);
  if (index < 0) return kInvalidArgument;
  if (const Result code = nvml.fault(call, index)) return code;
  const auto& device = nvml.node()->devices[static_cast<std::size_t>(index)];
  if (device.nvml.lacks(call)) return kNotSupported;
  return body(device);
}

/// One number about a device.
template <typename Number, typename Get>
Result get_number(const char* call, Device handle, Number* number, Get get) {
  return with_device(call, handle, [&](const DeviceDescription& device) -> Result {
    if (number == nullptr) return kInvalidArgument;
    *number = static_cast<Number>(get(device));
    return kSuccess;
  });
}
#define LAUNCHGAP_FAKE_NUMBER(call, Number, value)                                                \
  EXPORT Result call(Device device, Number* number) {                                             \
    return get_number(#call, device, number, [](const DeviceDescription& its) { return value; }); \
  }

inline Result copy_text(const std::string& from, char* text, unsigned bytes) {
  if (text == nullptr) return kInvalidArgument;
  if (bytes <= from.size()) return kInsufficientSize;
  std::memcpy(text, from.c_str(), from.size() + 1);
  return kSuccess;
}

/// The device for which matches(description) holds.
template <typename Matches>
Result find_device(const char* call, Device* handle, Matches matches) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized) return kUninitialized;
  const auto& devices = nvml.node()->devices;
  std::size_t found = 0;
  while (found < devices.size() && !matches(devices[found])) ++found;
  const bool exists = found < devices.size();
  if (const Result code = nvml.fault(call, exists ? static_cast<int>(found) : Faults::kNoDevice)) {
    return code;
  }
  if (!exists) return kNotFound;
  *handle = reinterpret_cast<Device>(const_cast<DeviceDescription*>(&devices[found]));
  return kSuccess;
}

}  // namespace launchgap::fake
