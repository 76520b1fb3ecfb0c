// The fake libnvidia-ml: what the description says of clocks, heat, power and neighbours. It reads
// the description itself, since NVML neither needs nor loads CUDA.
#include "tests/fake_cuda/nvml.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <unistd.h>

EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {
namespace {

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
    if (clock == kMemoryClock) return static_cast<double>(nvml.memory_clock_mhz);
    Driver* const driver = loaded_driver();
    return nvml.sm_clock_mhz / (driver != nullptr ? driver->pace(nvml.uuid) : 1);
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

EXPORT Result nvmlDeviceGetComputeRunningProcesses_v2(Device device,
                                                      unsigned* count,
                                                      ProcessInfo* processes) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

}  // namespace launchgap::fake
