// The fake libnvidia-ml: what the description says of clocks, heat, power and neighbours. It reads
// the description itself, since NVML neither needs nor loads CUDA.
#include "tests/fake_cuda/nvml.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <unistd.h>

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
  return get_number("nvmlDeviceGetClockInfo", device, megahertz, [&](const auto& its) {
    if (clock == kMemoryClock) return static_cast<double>(*its.nvml.memory_clock_mhz);
    Driver* const driver = loaded_driver();
    return *its.nvml.sm_clock_mhz / (driver != nullptr ? driver->pace(its.uuid) : 1);
  });
}

EXPORT Result nvmlDeviceGetTemperature(Device device, TemperatureSensor sensor, unsigned* celsius) {
  if (sensor != kGpuTemperature) return kInvalidArgument;
  return get_number("nvmlDeviceGetTemperature", device, celsius, [](const DeviceDescription& its) {
    return its.nvml.temperature_c;
  });
}

LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetPerformanceState, int, its.nvml.pstate)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetPowerUsage, unsigned, its.nvml.power_mw)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetTotalEnergyConsumption,
                      unsigned long long,
                      its.nvml.power_mw* now_ns() * 1e-9)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, its.nvml.reasons)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons,
                      unsigned long long,
                      its.nvml.reasons)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, its.nvml.pcie_generation)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, its.nvml.pcie_width)

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

}  // namespace launchgap::fake
