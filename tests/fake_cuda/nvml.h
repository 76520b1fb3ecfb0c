// What the functions of the fake libnvidia-ml share: the process's view of the node.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <type_traits>
#include <unistd.h>

#include "harness/device/cuda/abi/nvml.h"
#include "tests/fake_cuda/faults.h"
#include "tests/fake_cuda/operation.h"

#define EXPORT LAUNCHGAP_FAKE_EXPORT

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

  /// Null when the description is unusable, which one line on stderr explains.
  const Node* node() {
    const std::lock_guard lock(mutex_);
    if (load_attempted_) return node_.get();
    load_attempted_ = true;
    try {
      node_ = std::make_unique<Node>(load_node());
      faults_ = std::make_unique<Faults>(node_->faults);
    } catch (const DescriptionError& error) {
      std::fprintf(stderr, "launchgap fake node: %s\n", error.what());
    }
    return node_.get();
  }

  /// Counts a call against the faults: hangs, aborts, or returns the code that it must return.
  Result fault(const char* call, int device) {
    if (node() == nullptr) return kUnknown;
    const FaultDescription* fault = nullptr;
    {
      const std::lock_guard lock(mutex_);
      fault = faults_->next_call(Library::nvml, call, device);
    }
    if (fault == nullptr) return kSuccess;
    if (fault->action == FaultDescription::Action::abort) std::abort();
    if (fault->action == FaultDescription::Action::hang) {
      for (;;) pause();
    }
    return fault->code;
  }

  bool initialized() {
    const std::lock_guard lock(mutex_);
    return initialized_;
  }
  void initialize() {
    const std::lock_guard lock(mutex_);
    initialized_ = true;
  }

  /// Index of the device behind a handle; negative for what is none.
  int index_of(Device device) {
    const auto& devices = node_->devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (static_cast<const void*>(&devices[i]) == device) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  std::mutex mutex_;
  bool load_attempted_ = false;
  bool initialized_ = false;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Faults> faults_;
};

/// A call about a device: body(its description).
template <typename Body>
Result with_device(const char* call, Device handle, Body body) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized()) return kUninitialized;
  const int index = nvml.index_of(handle);
  if (index < 0) return kInvalidArgument;
  if (const Result code = nvml.fault(call, index)) return code;
  const auto& device = nvml.node()->devices[static_cast<std::size_t>(index)];
  if (device.nvml.missing_calls.contains(call)) return kNotSupported;
  return body(device.nvml);
}

/// One number about a device.
template <typename Number, typename Get>
Result get_number(const char* call, Device handle, Number* number, Get get) {
  return with_device(call, handle, [&](const NvmlDescription& nvml) -> Result {
    if (number == nullptr) return kInvalidArgument;
    *number = static_cast<Number>(get(nvml));
    return kSuccess;
  });
}

/// The device for which matches(description) holds.
template <typename Matches>
Result find_device(const char* call, Device* handle, Matches matches) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized()) return kUninitialized;
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
