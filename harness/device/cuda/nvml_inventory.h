// Every GPU that NVML shows, and the state it is in: what decides whether and how well it can work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace launchgap::cuda {

/// A process that NVML shows on a GPU. In a container the number may be that of another name space.
struct GpuProcess {
  unsigned pid = 0;
  std::optional<std::uint64_t> memory_bytes;  // unknown on some systems
  std::string name = {};                      // of the program, where it can be seen

  static void fields(auto& self, auto&& field) {
    field.optional("pid", self.pid);
    field("memory_bytes", self.memory_bytes);
    field.unless_empty("name", self.name);
  }
};

/// One GPU. What NVML does not tell is absent.
struct NvmlGpu {
  int index = 0;
  std::string problem;  // why it has no more to say of it: "GPU is lost"
  bool lost = false;    // that is why
  std::string uuid, name, pci_bus_id;
  std::optional<int> minor;  // N of /dev/nvidiaN
  std::optional<std::uint64_t> memory_total_bytes, memory_free_bytes;
  std::vector<GpuProcess> processes;        // that compute on it, besides this one
  std::optional<std::string> compute_mode;  // default, prohibited, exclusive process
  std::optional<bool> persistence, mig, ecc;
  std::optional<int> mig_instances;
  std::optional<std::uint64_t> uncorrected_ecc_errors;  // since the driver was loaded
  std::optional<bool> remap_pending, remap_failed;      // of rows of memory
  std::optional<int> pcie_generation, pcie_width, max_pcie_generation, max_pcie_width;
  std::optional<int> sm_clock_mhz, max_sm_clock_mhz, application_clock_mhz;
  std::optional<double> power_limit_w, default_power_limit_w;
  std::optional<std::uint64_t> clock_reasons;  // bits of nvmlClocksEventReasons
  std::optional<std::string> fabric;           // not started, in progress, completed

  /// As JSON (harness/record/fields.h): a probe has it from NVML, and the doctor from the probe.
  static void fields(auto& self, auto&& field) {
    field.optional("index", self.index);
    field.unless_empty("problem", self.problem);
    field.optional("lost", self.lost);
    field.unless_empty("uuid", self.uuid);
    field.unless_empty("name", self.name);
    field.unless_empty("pci_bus_id", self.pci_bus_id);
    field("minor", self.minor);
    field("memory_total_bytes", self.memory_total_bytes);
    field("memory_free_bytes", self.memory_free_bytes);
    field.optional("processes", self.processes);
    field("compute_mode", self.compute_mode);
    field("persistence", self.persistence);
    field("mig", self.mig);
    field("mig_instances", self.mig_instances);
    field("ecc", self.ecc);
    field("uncorrected_ecc_errors", self.uncorrected_ecc_errors);
    field("remap_pending", self.remap_pending);
    field("remap_failed", self.remap_failed);
    field("pcie_generation", self.pcie_generation);
    field("pcie_width", self.pcie_width);
    field("max_pcie_generation", self.max_pcie_generation);
    field("max_pcie_width", self.max_pcie_width);
    field("sm_clock_mhz", self.sm_clock_mhz);
    field("max_sm_clock_mhz", self.max_sm_clock_mhz);
    field("application_clock_mhz", self.application_clock_mhz);
    field("power_limit_w", self.power_limit_w);
    field("default_power_limit_w", self.default_power_limit_w);
    field("clock_reasons", self.clock_reasons);
    field("fabric", self.fabric);
  }
};

struct NvmlInventory {
  std::string path, version;  // of the library
  bool simulated = false;
  std::optional<std::string> driver_version;  // "580.65.06"
  std::optional<int> cuda_version;            // 13000
  std::vector<NvmlGpu> gpus;
};

/// Throws Error if NVML cannot be loaded, and LibraryError if it does not work.
NvmlInventory nvml_inventory();

}  // namespace launchgap::cuda
