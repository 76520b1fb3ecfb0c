// The part of the fake libnvidia-ml that tells which GPUs there are and in which state.
#include <cstring>

#include "tests/fake_cuda/nvml.h"

namespace launchgap::fake {
namespace {

Result copy_text(const std::string& from, char* text, unsigned bytes) {
  if (text == nullptr) return kInvalidArgument;
  if (bytes <= from.size()) return kInsufficientSize;
  std::memcpy(text, from.c_str(), from.size() + 1);
  return kSuccess;
}

/// A text about a device.
template <typename Get>
Result get_text(const char* call, Device handle, char* text, unsigned bytes, Get get) {
  const int index = Nvml::instance().initialized() ? Nvml::instance().index_of(handle) : -1;
  return with_device(call, handle, [&](const NvmlDescription&) {
    return copy_text(
        get(Nvml::instance().node()->devices[static_cast<std::size_t>(index)]), text, bytes);
  });
}

/// A call about the whole node: body(node).
template <typename Body>
Result with_node(const char* call, Body body) {
  Nvml& nvml = Nvml::instance();
  if (!nvml.initialized()) return kUninitialized;
  if (const Result code = nvml.fault(call, Faults::kNoDevice)) return code;
  return body(*nvml.node());
}

}  // namespace

EXPORT Result nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  return with_node("nvmlSystemGetDriverVersion", [&](const Node& node) {
    return copy_text(node.nvml_driver_version, text, bytes);
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
  if (!nvml.initialized()) return kUninitialized;
  const auto& devices = nvml.node()->devices;
  if (device == nullptr || index >= devices.size()) return kInvalidArgument;
  if (const Result code = nvml.fault("nvmlDeviceGetHandleByIndex_v2", static_cast<int>(index)))
    return code;
  *device = reinterpret_cast<Device>(const_cast<DeviceDescription*>(&devices[index]));
  return kSuccess;
}

EXPORT Result nvmlDeviceGetName(Device device, char* text, unsigned bytes) {
  return get_text("nvmlDeviceGetName", device, text, bytes, [](const DeviceDescription& its) {
    return its.name;
  });
}

EXPORT Result nvmlDeviceGetUUID(Device device, char* text, unsigned bytes) {
  return get_text("nvmlDeviceGetUUID", device, text, bytes, [](const DeviceDescription& its) {
    return its.uuid;
  });
}

EXPORT Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  const int index = Nvml::instance().initialized() ? Nvml::instance().index_of(device) : -1;
  return with_device("nvmlDeviceGetPciInfo_v3", device, [&](const NvmlDescription&) -> Result {
    if (info == nullptr) return kInvalidArgument;
    *info = {};
    // Eight digits of domain, unlike the driver's four.
    const auto& pci = Nvml::instance().node()->devices[static_cast<std::size_t>(index)].pci;
    std::snprintf(info->bus_id, sizeof info->bus_id, "0000%s", pci.c_str());
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  const int index = Nvml::instance().initialized() ? Nvml::instance().index_of(device) : -1;
  return get_number("nvmlDeviceGetMinorNumber", device, minor, [&](const auto&) { return index; });
}

EXPORT Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  const int index = Nvml::instance().initialized() ? Nvml::instance().index_of(device) : -1;
  return with_device("nvmlDeviceGetMemoryInfo", device, [&](const NvmlDescription& its) -> Result {
    if (memory == nullptr) return kInvalidArgument;
    const auto total =
        Nvml::instance().node()->devices[static_cast<std::size_t>(index)].memory_bytes;
    *memory = {total, total - its.memory_used_bytes, its.memory_used_bytes};
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetComputeMode(Device device, int* mode) {
  return get_number(
      "nvmlDeviceGetComputeMode", device, mode, [](const auto& its) { return its.compute_mode; });
}

EXPORT Result nvmlDeviceGetPersistenceMode(Device device, int* enabled) {
  return get_number("nvmlDeviceGetPersistenceMode", device, enabled, [](const auto& its) {
    return its.persistence;
  });
}

EXPORT Result nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* pending) {
  return with_device("nvmlDeviceGetMigMode", device, [&](const NvmlDescription& its) -> Result {
    if (now == nullptr || pending == nullptr) return kInvalidArgument;
    *now = *pending = its.mig_instances ? 1 : 0;
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  constexpr unsigned kMostInstances = 7;
  return get_number("nvmlDeviceGetMaxMigDeviceCount", device, count, [](const auto& its) {
    return its.mig_instances ? kMostInstances : 0;
  });
}

EXPORT Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  return with_device(
      "nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const NvmlDescription& its) -> Result {
        if (instance == nullptr) return kInvalidArgument;
        if (static_cast<int>(index) >= its.mig_instances.value_or(0)) return kNotFound;
        *instance = device;
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetEccMode(Device device, int* now, int* pending) {
  return with_device("nvmlDeviceGetEccMode", device, [&](const NvmlDescription& its) -> Result {
    if (now == nullptr || pending == nullptr) return kInvalidArgument;
    *now = *pending = its.ecc;
    return kSuccess;
  });
}

EXPORT Result nvmlDeviceGetTotalEccErrors(Device device,
                                          int error,
                                          int counter,
                                          unsigned long long* count) {
  if (error != kUncorrectedErrors || counter != kSinceBoot) return kInvalidArgument;
  return get_number("nvmlDeviceGetTotalEccErrors", device, count, [](const auto& its) {
    return its.uncorrected_ecc_errors;
  });
}

EXPORT Result nvmlDeviceGetRemappedRows(Device device,
                                        unsigned* correctable,
                                        unsigned* uncorrectable,
                                        unsigned* pending,
                                        unsigned* failed) {
  return with_device(
      "nvmlDeviceGetRemappedRows", device, [&](const NvmlDescription& its) -> Result {
        if (!correctable || !uncorrectable || !pending || !failed) return kInvalidArgument;
        *correctable = 0;
        *uncorrectable = its.remap_pending || its.remap_failed;
        *pending = its.remap_pending;
        *failed = its.remap_failed;
        return kSuccess;
      });
}

EXPORT Result nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* generation) {
  return get_number("nvmlDeviceGetMaxPcieLinkGeneration", device, generation, [](const auto& its) {
    return its.max_pcie_generation;
  });
}

EXPORT Result nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* lanes) {
  return get_number("nvmlDeviceGetMaxPcieLinkWidth", device, lanes, [](const auto& its) {
    return its.max_pcie_width;
  });
}

EXPORT Result nvmlDeviceGetMaxClockInfo(Device device, Clock, unsigned* mhz) {
  return get_number("nvmlDeviceGetMaxClockInfo", device, mhz, [](const auto& its) {
    return its.max_sm_clock_mhz;
  });
}

EXPORT Result nvmlDeviceGetApplicationsClock(Device device, Clock, unsigned* mhz) {
  return get_number("nvmlDeviceGetApplicationsClock", device, mhz, [](const auto& its) {
    return its.application_clock_mhz;
  });
}

EXPORT Result nvmlDeviceGetPowerManagementLimit(Device device, unsigned* milliwatts) {
  return get_number("nvmlDeviceGetPowerManagementLimit", device, milliwatts, [](const auto& its) {
    return its.power_limit_mw;
  });
}

EXPORT Result nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned* milliwatts) {
  return get_number(
      "nvmlDeviceGetPowerManagementDefaultLimit", device, milliwatts, [](const auto& its) {
        return its.default_power_limit_mw;
      });
}

EXPORT Result nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
  return get_number("nvmlDeviceGetEnforcedPowerLimit", device, milliwatts, [](const auto& its) {
    return its.power_limit_mw;
  });
}

EXPORT Result nvmlDeviceGetVbiosVersion(Device device, char* text, unsigned bytes) {
  return with_device("nvmlDeviceGetVbiosVersion", device, [&](const NvmlDescription& its) {
    return copy_text(its.vbios, text, bytes);
  });
}

EXPORT Result nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  return with_device(
      "nvmlDeviceGetGpuFabricInfo", device, [&](const NvmlDescription& its) -> Result {
        if (info == nullptr) return kInvalidArgument;
        *info = {};
        info->state = static_cast<FabricState>(its.fabric);
        return kSuccess;
      });
}

}  // namespace launchgap::fake
