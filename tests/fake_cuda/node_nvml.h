// What a node description says of what NVML says.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/cuda/abi/nvml.h"
#include "harness/record/field_rules.h"

namespace launchgap::fake {

/// What NVML says of a device.
struct NvmlDescription {
  int pstate = 0;
  std::optional<int> sm_clock_mhz, memory_clock_mhz;  // none: the device's
  int temperature_c = 40;
  int power_mw = 100'000;
  unsigned long long reasons = 0;
  // Of the time since the driver was loaded.
  double sw_power_cap_share = 0;
  double sw_thermal_share = 0;
  double hw_thermal_share = 0;
  double hw_power_brake_share = 0;
  int pcie_generation = 4;
  int pcie_width = 16;
  int pcie_replays = 0;
  std::vector<unsigned> processes;  // besides the caller
  std::size_t memory_used_bytes = 0;
  cuda::nvml::ComputeMode compute_mode = cuda::nvml::kDefaultMode;
  bool persistence = true;
  std::string vbios = "92.00.45.00.03";
  std::optional<int> mig_instances;  // none: not partitioned
  bool ecc = true;
  int uncorrected_ecc_errors = 0;
  bool remap_pending = false, remap_failed = false;
  std::optional<int> max_pcie_generation, max_pcie_width;      // none: as now
  std::optional<int> max_sm_clock_mhz, application_clock_mhz;  // none: the device's
  int power_limit_mw = 400'000, default_power_limit_mw = 400'000;
  cuda::nvml::FabricState fabric = cuda::nvml::kFabricNotSupported;
  std::vector<std::string> missing;  // calls, and fields as "field:74"

  bool lacks(std::string_view what) const;
  void complete();

  static void fields(auto& self, auto&& field) {
    using namespace cuda::nvml;
    constexpr Limits kNatural = at_least(0), kPositive = at_least(1), kShare = between(0, 1);
    field.optional("pstate", self.pstate, between(0, 15));
    field("sm_clock_mhz", self.sm_clock_mhz, kNatural);
    field("memory_clock_mhz", self.memory_clock_mhz, kNatural);
    field.optional("temperature_c", self.temperature_c, kNatural);
    field.optional("power_mw", self.power_mw, kNatural);
    field.optional("reasons", self.reasons);
    field.optional("sw_power_cap_share", self.sw_power_cap_share, kShare);
    field.optional("sw_thermal_share", self.sw_thermal_share, kShare);
    field.optional("hw_thermal_share", self.hw_thermal_share, kShare);
    field.optional("hw_power_brake_share", self.hw_power_brake_share, kShare);
    field.optional("pcie_generation", self.pcie_generation, kPositive);
    field.optional("pcie_width", self.pcie_width, kPositive);
    field.optional("pcie_replays", self.pcie_replays, kNatural);
    field.optional("processes", self.processes, between(1, std::numeric_limits<int>::max()));
    field.optional("memory_used_bytes", self.memory_used_bytes);
    field.optional("compute_mode",
                   self.compute_mode,
                   Names<ComputeMode>{{{"default", kDefaultMode},
                                       {"prohibited", kProhibitedMode},
                                       {"exclusive process", kExclusiveProcessMode}}});
    field.optional("persistence", self.persistence);
    field.optional("vbios", self.vbios, kNotEmpty);
    field("mig_instances", self.mig_instances, kNatural);
    field.optional("ecc", self.ecc);
    field.optional("uncorrected_ecc_errors", self.uncorrected_ecc_errors, kNatural);
    field.optional("remap_pending", self.remap_pending);
    field.optional("remap_failed", self.remap_failed);
    field("max_pcie_generation", self.max_pcie_generation, kPositive);
    field("max_pcie_width", self.max_pcie_width, kPositive);
    field("max_sm_clock_mhz", self.max_sm_clock_mhz, kNatural);
    field("application_clock_mhz", self.application_clock_mhz, kNatural);
    field.optional("power_limit_mw", self.power_limit_mw, kNatural);
    field.optional("default_power_limit_mw", self.default_power_limit_mw, kNatural);
    field.optional("fabric",
                   self.fabric,
                   Names<FabricState>{{{"not supported", kFabricNotSupported},
                                       {"not started", kFabricNotStarted},
                                       {"in progress", kFabricInProgress},
                                       {"completed", kFabricCompleted}}});
    field.optional("missing", self.missing);
  }
};

}  // namespace launchgap::fake
