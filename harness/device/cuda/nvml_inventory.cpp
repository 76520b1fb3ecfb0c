#include "harness/device/cuda/nvml_inventory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unistd.h>

#include "harness/device/cuda/nvml.h"

namespace launchgap::cuda {
namespace {

using nvml::kSuccess;

/// A number that a function tells of a device.
template <class Number, class Value>
void ask(std::optional<Number>& into,
         nvml::Result (*function)(nvml::Device, Value*),
         nvml::Device device) {
  Value value{};
  if (function && function(device, &value) == kSuccess) into = static_cast<Number>(value);
}

void ask_clock(std::optional<int>& into,
               nvml::Result (*function)(nvml::Device, nvml::Clock, unsigned*),
               nvml::Device device) {
  unsigned mhz = 0;
  if (function && function(device, nvml::kSmClock, &mhz) == kSuccess) into = static_cast<int>(mhz);
}

std::string text_of(nvml::Result (*function)(nvml::Device, char*, unsigned), nvml::Device device) {
  std::array<char, 128> text{};
  if (!function || function(device, text.data(), text.size() - 1) != kSuccess) return "";
  return text.data();
}

std::optional<std::string> compute_mode(const Nvml& library, nvml::Device device) {
  int mode = 0;
  if (!library.nvmlDeviceGetComputeMode ||
      library.nvmlDeviceGetComputeMode(device, &mode) != kSuccess)
    return std::nullopt;
  switch (mode) {
    case nvml::kDefaultMode:
      return "default";
    case nvml::kProhibitedMode:
      return "prohibited";
    default:
      return "exclusive process";
  }
}

std::optional<std::string> fabric_state(const Nvml& library, nvml::Device device) {
  nvml::FabricInfo info{};
  if (!library.nvmlDeviceGetGpuFabricInfo ||
      library.nvmlDeviceGetGpuFabricInfo(device, &info) != kSuccess)
    return std::nullopt;
  switch (info.state) {
    case nvml::kFabricNotStarted:
      return "not started";
    case nvml::kFabricInProgress:
      return "in progress";
    case nvml::kFabricCompleted:
      return "completed";
    default:
      return std::nullopt;
  }
}

void read_partitions(const Nvml& library, nvml::Device device, NvmlGpu& gpu) {
  unsigned now = 0, pending = 0;
  if (!library.nvmlDeviceGetMigMode ||
      library.nvmlDeviceGetMigMode(device, &now, &pending) != kSuccess)
    return;
  gpu.mig = now != 0;
  unsigned most = 0;
  if (now == 0 || !library.nvmlDeviceGetMaxMigDeviceCount ||
      !library.nvmlDeviceGetMigDeviceHandleByIndex ||
      library.nvmlDeviceGetMaxMigDeviceCount(device, &most) != kSuccess)
    return;
  gpu.mig_instances = 0;
  for (unsigned i = 0; i < std::min(most, 64u); ++i) {
    nvml::Device instance = nullptr;
    if (library.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &instance) == kSuccess)
      ++*gpu.mig_instances;
  }
}

void read_memory_health(const Nvml& library, nvml::Device device, NvmlGpu& gpu) {
  int now = 0, pending = 0;
  if (library.nvmlDeviceGetEccMode &&
      library.nvmlDeviceGetEccMode(device, &now, &pending) == kSuccess)
    gpu.ecc = now != 0;
  unsigned long long errors = 0;
  if (library.nvmlDeviceGetTotalEccErrors &&
      library.nvmlDeviceGetTotalEccErrors(
          device, nvml::kUncorrectedErrors, nvml::kSinceBoot, &errors) == kSuccess)
    gpu.uncorrected_ecc_errors = errors;
  unsigned correctable = 0, uncorrectable = 0, waiting = 0, failed = 0;
  if (library.nvmlDeviceGetRemappedRows &&
      library.nvmlDeviceGetRemappedRows(device, &correctable, &uncorrectable, &waiting, &failed) ==
          kSuccess) {
    gpu.remap_pending = waiting != 0;
    gpu.remap_failed = failed != 0;
  }
}

void read_processes(const Nvml& library, nvml::Device device, NvmlGpu& gpu) {
  std::array<nvml::ProcessInfo, 256> processes{};
  auto count = static_cast<unsigned>(processes.size());
  const auto list = library.nvmlDeviceGetComputeRunningProcesses_v3
                        ? library.nvmlDeviceGetComputeRunningProcesses_v3
                        : library.nvmlDeviceGetComputeRunningProcesses_v2;
  if (!list || list(device, &count, processes.data()) != kSuccess) return;
  for (unsigned i = 0; i < std::min<std::size_t>(count, processes.size()); ++i) {
    constexpr unsigned long long kNotAvailable = ~0ull;
    if (processes[i].pid == static_cast<unsigned>(getpid())) continue;
    GpuProcess process{processes[i].pid, std::nullopt};
    if (processes[i].used_memory_bytes != kNotAvailable)
      process.memory_bytes = processes[i].used_memory_bytes;
    gpu.processes.push_back(process);
  }
}

void read_gpu(const Nvml& library, nvml::Device device, NvmlGpu& gpu) {
  gpu.uuid = text_of(library.nvmlDeviceGetUUID, device);
  gpu.name = text_of(library.nvmlDeviceGetName, device);
  if (nvml::PciInfo info{}; library.nvmlDeviceGetPciInfo_v3 &&
                            library.nvmlDeviceGetPciInfo_v3(device, &info) == kSuccess) {
    gpu.pci_bus_id.assign(info.bus_id, strnlen(info.bus_id, sizeof info.bus_id));
  }
  ask(gpu.minor, library.nvmlDeviceGetMinorNumber, device);
  if (nvml::Memory memory{}; library.nvmlDeviceGetMemoryInfo &&
                             library.nvmlDeviceGetMemoryInfo(device, &memory) == kSuccess) {
    gpu.memory_total_bytes = memory.total;
    gpu.memory_free_bytes = memory.free;
  }
  gpu.compute_mode = compute_mode(library, device);
  ask(gpu.persistence, library.nvmlDeviceGetPersistenceMode, device);
  read_partitions(library, device, gpu);
  read_memory_health(library, device, gpu);
  read_processes(library, device, gpu);
  ask(gpu.pcie_generation, library.nvmlDeviceGetCurrPcieLinkGeneration, device);
  ask(gpu.pcie_width, library.nvmlDeviceGetCurrPcieLinkWidth, device);
  ask(gpu.max_pcie_generation, library.nvmlDeviceGetMaxPcieLinkGeneration, device);
  ask(gpu.max_pcie_width, library.nvmlDeviceGetMaxPcieLinkWidth, device);
  ask_clock(gpu.sm_clock_mhz, library.nvmlDeviceGetClockInfo, device);
  ask_clock(gpu.max_sm_clock_mhz, library.nvmlDeviceGetMaxClockInfo, device);
  ask_clock(gpu.application_clock_mhz, library.nvmlDeviceGetApplicationsClock, device);
  const auto watts = [&](auto* function) {
    std::optional<double> value;
    ask(value, function, device);
    if (value) *value *= 1e-3;
    return value;
  };
  gpu.power_limit_w = watts(library.nvmlDeviceGetPowerManagementLimit);
  gpu.default_power_limit_w = watts(library.nvmlDeviceGetPowerManagementDefaultLimit);
  ask(gpu.clock_reasons, library.nvmlDeviceGetCurrentClocksEventReasons, device);
  if (!gpu.clock_reasons)
    ask(gpu.clock_reasons, library.nvmlDeviceGetCurrentClocksThrottleReasons, device);
  gpu.fabric = fabric_state(library, device);
}

}  // namespace

NvmlInventory nvml_inventory() {
  const Nvml& library = Nvml::get();
  NvmlInventory inventory{
      library.facts.path, library.facts.version, library.facts.simulated, {}, {}, {}};
  std::array<char, 128> text{};
  if (library.nvmlSystemGetDriverVersion &&
      library.nvmlSystemGetDriverVersion(text.data(), text.size() - 1) == kSuccess)
    inventory.driver_version = text.data();
  int version = 0;
  if (library.nvmlSystemGetCudaDriverVersion_v2 &&
      library.nvmlSystemGetCudaDriverVersion_v2(&version) == kSuccess)
    inventory.cuda_version = version;
  unsigned count = 0;
  if (!library.nvmlDeviceGetCount_v2 || !library.nvmlDeviceGetHandleByIndex_v2) return inventory;
  library.check(library.nvmlDeviceGetCount_v2(&count), "nvmlDeviceGetCount_v2");
  constexpr unsigned kMostGpus = 1024;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    NvmlGpu gpu;
    gpu.index = static_cast<int>(i);
    nvml::Device device = nullptr;
    const nvml::Result code = library.nvmlDeviceGetHandleByIndex_v2(i, &device);
    if (code == kSuccess) {
      read_gpu(library, device, gpu);
    } else {
      const char* const reason = library.nvmlErrorString(code);
      gpu.problem = reason ? reason : "no text for it";
      gpu.lost = code == nvml::kGpuIsLost;
    }
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

}  // namespace launchgap::cuda
