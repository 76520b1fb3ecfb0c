// The fake libnvidia-ml: what the description says of clocks, heat, power and neighbours. It reads
// the description itself, since NVML neither needs nor loads CUDA.
#include "harness/device/cuda/abi/nvml.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unistd.h>

#include "tests/fake_cuda/faults.h"
#include "tests/fake_cuda/operation.h"

#define EXPORT LAUNCHGAP_FAKE_EXPORT

EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

using namespace cuda::nvml;

using Result = cuda::nvml::Result;

constexpr Result kInvalidArgument = 2;

constexpr std::pair<Result, const char*> kResults[] = {
    {kSuccess, "Success"},
    {kUninitialized, "Uninitialized"},
    {kInvalidArgument, "Invalid Argument"},
    {kNotSupported, "Not Supported"},
    {kNoPermission, "Insufficient Permissions"},
    {kNotFound, "Not Found"},
    {kInsufficientSize, "Insufficient Size"},
    {kDriverNotLoaded, "Driver Not Loaded"},
    {kFunctionNotFound, "Function Not Found"},
    {kGpuIsLost, "GPU is lost"},
    {kLibraryDriverMismatch, "Driver/library version mismatch"},
};

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

struct BusId {
  unsigned domain = 0, bus = 0, device = 0, function = 0;

  bool operator==(const BusId&) const = default;
};

/// "0000:07:00.0", with four or eight digits of domain or none.
bool parse(const char* text, BusId& id) {
  if (std::sscanf(text, "%x:%x:%x.%x", &id.domain, &id.bus, &id.device, &id.function) == 4)
    return true;
  id.domain = 0;
  return std::sscanf(text, "%x:%x.%x", &id.bus, &id.device, &id.function) == 3;
}

/// Since the driver was loaded, which was when the machine started.
unsigned long long share_of_time_ns(double share) {
  return static_cast<unsigned long long>(std::llround(share * now_ns()));
}

Result read_field(const NvmlDescription& nvml, FieldValue& value) {
  if (nvml.missing_fields.contains(value.field)) return kNotSupported;
  value.type = kUnsignedLongLong;
  switch (value.field) {
    case kSwPowerCapNs:
      value.value.as_unsigned_long_long = share_of_time_ns(nvml.sw_power_cap_share);
      return kSuccess;
    case kSwThermalNs:
      value.value.as_unsigned_long_long = share_of_time_ns(nvml.sw_thermal_share);
      return kSuccess;
    case kHwThermalNs:
      value.value.as_unsigned_long_long = share_of_time_ns(nvml.hw_thermal_share);
      return kSuccess;
    case kHwPowerBrakeNs:
      value.value.as_unsigned_long_long = share_of_time_ns(nvml.hw_power_brake_share);
      return kSuccess;
    case kSyncBoostNs:
      value.value.as_unsigned_long_long = 0;
      return kSuccess;
    case kPcieReplays:
      value.type = kUnsignedInt;
      value.value.as_unsigned = static_cast<unsigned>(nvml.pcie_replays);
      return kSuccess;
    case kPowerInstantMilliwatts:
      value.type = kUnsignedInt;
      value.value.as_unsigned = static_cast<unsigned>(nvml.power_mw);
      return kSuccess;
    default:
      return kNotSupported;
  }
}

std::int64_t realtime_us() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

EXPORT Result nvmlInit_v2() {
  Nvml& nvml = Nvml::instance();
  if (nvml.node() == nullptr) return kUnknown;
  if (const Result code = nvml.fault("nvmlInit_v2", Faults::kNoDevice)) return code;
  nvml.initialize();
  return kSuccess;
}

EXPORT const char* nvmlErrorString(Result result) {
  for (const auto& [known, text] : kResults) {
    if (known == result) return text;
  }
  return "Unknown Error";
}

EXPORT Result nvmlSystemGetNVMLVersion(char* text, unsigned bytes) {
  Nvml& nvml = Nvml::instance();
  if (const Result code = nvml.fault("nvmlSystemGetNVMLVersion", Faults::kNoDevice)) return code;
  if (text == nullptr) return kInvalidArgument;
  const std::string& version = nvml.node()->nvml_version;
  if (bytes <= version.size()) return kInsufficientSize;
  version.copy(text, version.size());
  text[version.size()] = '\0';
  return kSuccess;
}

EXPORT Result nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (uuid == nullptr || device == nullptr) return kInvalidArgument;
  return find_device("nvmlDeviceGetHandleByUUID", device, [&](const DeviceDescription& candidate) {
    return candidate.uuid == uuid;
  });
}

EXPORT Result nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  BusId wanted;
  if (bus_id == nullptr || device == nullptr || !parse(bus_id, wanted)) return kInvalidArgument;
  return find_device(
      "nvmlDeviceGetHandleByPciBusId_v2", device, [&](const DeviceDescription& candidate) {
        BusId its;
        return parse(candidate.pci.c_str(), its) && its == wanted;
      });
}

EXPORT Result nvmlDeviceGetPerformanceState(Device device, int* state) {
  return get_number(
      "nvmlDeviceGetPerformanceState", device, state, [](const auto& nvml) { return nvml.pstate; });
}

EXPORT Result nvmlDeviceGetClockInfo(Device device, Clock clock, unsigned* megahertz) {
  // Graphics and video, which the harness does not ask for, run as the SMs do.
  constexpr int kVideoClock = 3;
  if (clock < 0 || clock > kVideoClock) return kInvalidArgument;
  return get_number("nvmlDeviceGetClockInfo", device, megahertz, [&](const auto& nvml) {
    return clock == kMemoryClock ? nvml.memory_clock_mhz : nvml.sm_clock_mhz;
  });
}

EXPORT Result nvmlDeviceGetTemperature(Device device, TemperatureSensor sensor, unsigned* celsius) {
  if (sensor != kGpuTemperature) return kInvalidArgument;
  return get_number("nvmlDeviceGetTemperature", device, celsius, [](const auto& nvml) {
    return nvml.temperature_c;
  });
}

EXPORT Result nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return get_number("nvmlDeviceGetPowerUsage", device, milliwatts, [](const auto& nvml) {
    return nvml.power_mw;
  });
}

EXPORT Result nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  return get_number(
      "nvmlDeviceGetTotalEnergyConsumption", device, millijoules, [](const auto& nvml) {
        return nvml.power_mw * now_ns() * 1e-9;
      });
}

EXPORT Result nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  return get_number(
      "nvmlDeviceGetCurrentClocksEventReasons", device, reasons, [](const auto& nvml) {
        return nvml.reasons;
      });
}

EXPORT Result nvmlDeviceGetCurrentClocksThrottleReasons(Device device,
                                                        unsigned long long* reasons) {
  return get_number(
      "nvmlDeviceGetCurrentClocksThrottleReasons", device, reasons, [](const auto& nvml) {
        return nvml.reasons;
      });
}

EXPORT Result nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* generation) {
  return get_number(
      "nvmlDeviceGetCurrPcieLinkGeneration", device, generation, [](const auto& nvml) {
        return nvml.pcie_generation;
      });
}

EXPORT Result nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* lanes) {
  return get_number("nvmlDeviceGetCurrPcieLinkWidth", device, lanes, [](const auto& nvml) {
    return nvml.pcie_width;
  });
}

EXPORT Result nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  return with_device(
      "nvmlDeviceGetFieldValues", device, [&](const NvmlDescription& nvml) -> Result {
        if (count <= 0 || values == nullptr) return kInvalidArgument;
        for (int i = 0; i < count; ++i) {
          values[i].timestamp = realtime_us();
          values[i].latency_us = 1;
          values[i].result = read_field(nvml, values[i]);
        }
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetComputeRunningProcesses_v3(Device device,
                                                      unsigned* count,
                                                      ProcessInfo* processes) {
  return with_device(
      "nvmlDeviceGetComputeRunningProcesses_v3",
      device,
      [&](const NvmlDescription& nvml) -> Result {
        if (count == nullptr) return kInvalidArgument;
        const auto room = *count;
        *count = static_cast<unsigned>(1 + nvml.processes.size());
        if (room < *count) return kInsufficientSize;
        if (processes == nullptr) return kInvalidArgument;
        constexpr unsigned long long kUsedBytes = 512ull << 20;
        constexpr unsigned kNoInstance = ~0u;
        processes[0] = {static_cast<unsigned>(getpid()), kUsedBytes, kNoInstance, kNoInstance};
        for (std::size_t i = 0; i < nvml.processes.size(); ++i) {
          processes[i + 1] = {nvml.processes[i], kUsedBytes, kNoInstance, kNoInstance};
        }
        return kSuccess;
      });
}

}  // namespace launchgap::fake

namespace launchgap::cuda::nvml {
#define LAUNCHGAP_SAME_SIGNATURE(name, required, ...) \
  static_assert(std::is_same_v<decltype(fake::name), __VA_ARGS__>, #name);
LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::nvml
