// The fake libnvidia-ml: which GPUs there are and in which state, and what the description says of
// clocks, heat, power and neighbours. It reads the description itself, since NVML neither needs nor
// loads CUDA.
#include "harness/device/cuda/abi/nvml.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <unistd.h>

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

namespace {

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

/// What is known of a device, a number or a struct.
template <typename Answer, typename Get>
Result get_answer(const char* call, Device handle, Answer* answer, Get get) {
  return with_device(call, handle, [&](const DeviceDescription& device) {
    return put(answer, get(device), kInvalidArgument);
  });
}
#define LAUNCHGAP_FAKE_ANSWER(call, Answer, value)                                                \
  EXPORT Result call(Device device, Answer* answer) {                                             \
    return get_answer(#call, device, answer, [](const DeviceDescription& its) { return value; }); \
  }

Result copy_text(const std::string& from, char* text, unsigned bytes) {
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

/// A call about the whole node: body(node).
template <typename Body>
Result with_node(const char* call, Body body) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized) return kUninitialized;
  if (const Result code = nvml.fault(call, Faults::kNoDevice)) return code;
  return body(*nvml.node());
}

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
  if (nvml.lacks("field:" + std::to_string(value.field))) return kNotSupported;
  value.type = kUnsignedLongLong;
  const auto report_share = [&](double share) {
    value.value.as_unsigned_long_long = share_of_time_ns(share);
    return kSuccess;
  };
  const auto report = [&](int number) {
    value.type = kUnsignedInt;
    value.value.as_unsigned = static_cast<unsigned>(number);
    return kSuccess;
  };
  switch (value.field) {
    case kSwPowerCapNs:
      return report_share(nvml.sw_power_cap_share);
    case kSwThermalNs:
      return report_share(nvml.sw_thermal_share);
    case kHwThermalNs:
      return report_share(nvml.hw_thermal_share);
    case kHwPowerBrakeNs:
      return report_share(nvml.hw_power_brake_share);
    case kSyncBoostNs:
      return report_share(0);
    case kPcieReplays:
      return report(nvml.pcie_replays);
    case kPowerInstantMilliwatts:
      return report(nvml.power_mw);
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
  nvml.initialized = true;
  return kSuccess;
}

EXPORT const char* nvmlErrorString(Result result) {
  return found_in(kResults, result).value_or("Unknown Error");
}

EXPORT Result nvmlSystemGetNVMLVersion(char* text, unsigned bytes) {
  Nvml& nvml = Nvml::instance();
  if (const Result code = nvml.fault("nvmlSystemGetNVMLVersion", Faults::kNoDevice)) return code;
  return copy_text(nvml.node()->nvml.version, text, bytes);
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

EXPORT Result nvmlDeviceGetClockInfo(Device device, Clock clock, unsigned* megahertz) {
  // Graphics and video, which the harness does not ask for, run as the SMs do.
  constexpr int kVideoClock = 3;
  if (clock < 0 || clock > kVideoClock) return kInvalidArgument;
  return get_answer("nvmlDeviceGetClockInfo", device, megahertz, [&](const auto& its) {
    if (clock == kMemoryClock) return static_cast<double>(*its.nvml.memory_clock_mhz);
    Driver* const driver = loaded_driver();
    return *its.nvml.sm_clock_mhz / (driver != nullptr ? driver->pace(its.uuid) : 1);
  });
}

EXPORT Result nvmlDeviceGetTemperature(Device device, TemperatureSensor sensor, unsigned* celsius) {
  if (sensor != kGpuTemperature) return kInvalidArgument;
  return get_answer("nvmlDeviceGetTemperature", device, celsius, [](const DeviceDescription& its) {
    return its.nvml.temperature_c;
  });
}

LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPerformanceState, int, its.nvml.pstate)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPowerUsage, unsigned, its.nvml.power_mw)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetTotalEnergyConsumption,
                      unsigned long long,
                      its.nvml.power_mw* now_ns() * 1e-9)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, its.nvml.reasons)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons,
                      unsigned long long,
                      its.nvml.reasons)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, its.nvml.pcie_generation)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, its.nvml.pcie_width)

EXPORT Result nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  return with_device(
      "nvmlDeviceGetFieldValues", device, [&](const DeviceDescription& its) -> Result {
        if (count <= 0 || values == nullptr) return kInvalidArgument;
        for (int i = 0; i < count; ++i) {
          values[i].timestamp = realtime_us();
          values[i].latency_us = 1;
          values[i].result = read_field(its.nvml, values[i]);
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
      [&](const DeviceDescription& its) -> Result {
        if (count == nullptr) return kInvalidArgument;
        const auto& others = its.nvml.processes;
        const auto room = *count;
        *count = static_cast<unsigned>(1 + others.size());
        if (room < *count) return kInsufficientSize;
        if (processes == nullptr) return kInvalidArgument;
        constexpr unsigned long long kUsedBytes = 512ull << 20;
        constexpr unsigned kNoInstance = ~0u;
        processes[0] = {static_cast<unsigned>(getpid()), kUsedBytes, kNoInstance, kNoInstance};
        for (std::size_t i = 0; i < others.size(); ++i) {
          processes[i + 1] = {others[i], kUsedBytes, kNoInstance, kNoInstance};
        }
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetComputeRunningProcesses_v2(Device device,
                                                      unsigned* count,
                                                      ProcessInfo* processes) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

// Which GPUs there are, and in which state

EXPORT Result nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  return with_node("nvmlSystemGetDriverVersion", [&](const Node& node) {
    return copy_text(node.nvml.driver_version, text, bytes);
  });
}

EXPORT Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return with_node("nvmlSystemGetCudaDriverVersion_v2", [&](const Node& node) {
    return put(version, node.driver_version, kInvalidArgument);
  });
}

EXPORT Result nvmlDeviceGetCount_v2(unsigned* count) {
  return with_node("nvmlDeviceGetCount_v2", [&](const Node& node) {
    return put(count, node.devices.size(), kInvalidArgument);
  });
}

EXPORT Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized) return kUninitialized;
  const auto& devices = nvml.node()->devices;
  if (device == nullptr || index >= devices.size()) return kInvalidArgument;
  if (const Result code = nvml.fault("nvmlDeviceGetHandleByIndex_v2", static_cast<int>(index)))
    return code;
  *device = reinterpret_cast<Device>(const_cast<DeviceDescription*>(&devices[index]));
  return kSuccess;
}

#define LAUNCHGAP_FAKE_TEXT(call, value)                                  \
  EXPORT Result call(Device device, char* text, unsigned bytes) {         \
    return with_device(#call, device, [&](const DeviceDescription& its) { \
      return copy_text(value, text, bytes);                               \
    });                                                                   \
  }
LAUNCHGAP_FAKE_TEXT(nvmlDeviceGetName, its.name)
LAUNCHGAP_FAKE_TEXT(nvmlDeviceGetUUID, its.uuid)
LAUNCHGAP_FAKE_TEXT(nvmlDeviceGetVbiosVersion, its.nvml.vbios)

constexpr unsigned kMostInstances = 7;
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetMinorNumber,
                      unsigned,
                      &its - Nvml::instance().node()->devices.data())
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetComputeMode, int, its.nvml.compute_mode)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPersistenceMode, int, its.nvml.persistence)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetMaxMigDeviceCount,
                      unsigned,
                      its.nvml.mig_instances ? kMostInstances : 0)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, *its.nvml.max_pcie_generation)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, *its.nvml.max_pcie_width)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned, its.nvml.power_limit_mw)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPowerManagementDefaultLimit,
                      unsigned,
                      its.nvml.default_power_limit_mw)
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned, its.nvml.power_limit_mw)

EXPORT Result nvmlDeviceGetMaxClockInfo(Device device, Clock, unsigned* mhz) {
  return get_answer("nvmlDeviceGetMaxClockInfo", device, mhz, [](const DeviceDescription& its) {
    return *its.nvml.max_sm_clock_mhz;
  });
}

EXPORT Result nvmlDeviceGetApplicationsClock(Device device, Clock, unsigned* mhz) {
  return get_answer(
      "nvmlDeviceGetApplicationsClock", device, mhz, [](const DeviceDescription& its) {
        return *its.nvml.application_clock_mhz;
      });
}

LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetMemoryInfo,
                      Memory,
                      (Memory{its.memory_bytes,
                              its.memory_bytes - its.nvml.memory_used_bytes,
                              its.nvml.memory_used_bytes}))

/// Eight digits of domain, unlike the driver's four.
static PciInfo pci_info(const std::string& pci) {
  PciInfo info{};
  std::snprintf(info.bus_id, sizeof info.bus_id, "0000%s", pci.c_str());
  return info;
}
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetPciInfo_v3, PciInfo, pci_info(its.pci))

/// A mode, as it is now and as it will be once the machine is started again: the same.
#define LAUNCHGAP_FAKE_MODE(call, Mode, value)                                    \
  EXPORT Result call(Device device, Mode* now, Mode* pending) {                   \
    return with_device(#call, device, [&](const DeviceDescription& its) {         \
      const Result result = put(now, value, kInvalidArgument);                    \
      return result == kSuccess ? put(pending, value, kInvalidArgument) : result; \
    });                                                                           \
  }
LAUNCHGAP_FAKE_MODE(nvmlDeviceGetMigMode, unsigned, its.nvml.mig_instances.has_value())
LAUNCHGAP_FAKE_MODE(nvmlDeviceGetEccMode, int, its.nvml.ecc)

EXPORT Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  return with_device(
      "nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const DeviceDescription& its) -> Result {
        if (static_cast<int>(index) >= its.nvml.mig_instances.value_or(0)) return kNotFound;
        return put(instance, device, kInvalidArgument);
      });
}

EXPORT Result nvmlDeviceGetTotalEccErrors(Device device,
                                          int error,
                                          int counter,
                                          unsigned long long* count) {
  if (error != kUncorrectedErrors || counter != kSinceBoot) return kInvalidArgument;
  return get_answer("nvmlDeviceGetTotalEccErrors", device, count, [](const auto& its) {
    return its.nvml.uncorrected_ecc_errors;
  });
}

EXPORT Result nvmlDeviceGetRemappedRows(Device device,
                                        unsigned* correctable,
                                        unsigned* uncorrectable,
                                        unsigned* pending,
                                        unsigned* failed) {
  return with_device(
      "nvmlDeviceGetRemappedRows", device, [&](const DeviceDescription& its) -> Result {
        if (!correctable || !uncorrectable || !pending || !failed) return kInvalidArgument;
        *correctable = 0;
        *uncorrectable = its.nvml.remap_pending || its.nvml.remap_failed;
        *pending = its.nvml.remap_pending;
        *failed = its.nvml.remap_failed;
        return kSuccess;
      });
}

static FabricInfo fabric_info(FabricState state) {
  FabricInfo info{};
  info.state = state;
  return info;
}
LAUNCHGAP_FAKE_ANSWER(nvmlDeviceGetGpuFabricInfo, FabricInfo, fabric_info(its.nvml.fabric))

}  // namespace launchgap::fake
