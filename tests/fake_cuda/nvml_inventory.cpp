// The part of the fake libnvidia-ml that tells which GPUs there are and in which state.
#include <cstdio>

#include "tests/fake_cuda/nvml.h"

namespace launchgap::fake {
namespace {

/// A call about the whole node: body(node).
template <typename Body>
Result with_node(const char* call, Body body) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized) return kUninitialized;
  if (const Result code = nvml.fault(call, Faults::kNoDevice)) return code;
  return body(*nvml.node());
}

}  // namespace

EXPORT Result nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  return with_node("nvmlSystemGetDriverVersion", [&](const Node& node) {
    return copy_text(node.nvml.driver_version, text, bytes);
  });
}

EXPORT Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return with_node("nvmlSystemGetCudaDriverVersion_v2", [&](const Node& node) -> Result {
    if (version == nullptr) return kInvalidArgument;
    *version = node.driver_version;
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetCount_v2(unsigned* count) {
  return with_node("nvmlDeviceGetCount_v2", [&](const Node& node) -> Result {
    if (count == nullptr) return kInvalidArgument;
    *count = static_cast<unsigned>(node.devices.size());
    return kSuccess;
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
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetMinorNumber,
                      unsigned,
                      &its - Nvml::instance().node()->devices.data())
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetComputeMode, int, its.nvml.compute_mode)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetPersistenceMode, int, its.nvml.persistence)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetMaxMigDeviceCount,
                      unsigned,
                      its.nvml.mig_instances ? kMostInstances : 0)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, *its.nvml.max_pcie_generation)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, *its.nvml.max_pcie_width)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, its.nvml.power_limit_mw)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit,
                      unsigned,
                      its.nvml.default_power_limit_mw)
LAUNCHGAP_FAKE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, its.nvml.power_limit_mw)

EXPORT Result nvmlDeviceGetMaxClockInfo(Device device, Clock, unsigned* mhz) {
  return get_number("nvmlDeviceGetMaxClockInfo", device, mhz, [](const DeviceDescription& its) {
    return *its.nvml.max_sm_clock_mhz;
  });
}

EXPORT Result nvmlDeviceGetApplicationsClock(Device device, Clock, unsigned* mhz) {
  return get_number(
      "nvmlDeviceGetApplicationsClock", device, mhz, [](const DeviceDescription& its) {
        return *its.nvml.application_clock_mhz;
      });
}

EXPORT Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return with_device(
      "nvmlDeviceGetMemoryInfo", device, [&](const DeviceDescription& its) -> Result {
        if (memory == nullptr) return kInvalidArgument;
        const auto total = its.memory_bytes, used = its.nvml.memory_used_bytes;
        *memory = {total, total - used, used};
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  return with_device(
      "nvmlDeviceGetPciInfo_v3", device, [&](const DeviceDescription& its) -> Result {
        if (info == nullptr) return kInvalidArgument;
        *info = {};
        // Eight digits of domain, unlike the driver's four.
        std::snprintf(info->bus_id, sizeof info->bus_id, "0000%s", its.pci.c_str());
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* pending) {
  return with_device("nvmlDeviceGetMigMode", device, [&](const DeviceDescription& its) -> Result {
    if (now == nullptr || pending == nullptr) return kInvalidArgument;
    *now = *pending = its.nvml.mig_instances ? 1 : 0;
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  return with_device(
      "nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const DeviceDescription& its) -> Result {
        if (instance == nullptr) return kInvalidArgument;
        if (static_cast<int>(index) >= its.nvml.mig_instances.value_or(0)) return kNotFound;
        *instance = device;
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetEccMode(Device device, int* now, int* pending) {
  return with_device("nvmlDeviceGetEccMode", device, [&](const DeviceDescription& its) -> Result {
    if (now == nullptr || pending == nullptr) return kInvalidArgument;
    *now = *pending = its.nvml.ecc;
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetTotalEccErrors(Device device,
                                          int error,
                                          int counter,
                                          unsigned long long* count) {
  if (error != kUncorrectedErrors || counter != kSinceBoot) return kInvalidArgument;
  return get_number("nvmlDeviceGetTotalEccErrors", device, count, [](const auto& its) {
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

EXPORT Result nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  return with_device(
      "nvmlDeviceGetGpuFabricInfo", device, [&](const DeviceDescription& its) -> Result {
        if (info == nullptr) return kInvalidArgument;
        *info = {};
        info->state = its.nvml.fabric;
        return kSuccess;
      });
}

}  // namespace launchgap::fake
