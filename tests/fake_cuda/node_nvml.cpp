// The "nvml" object of a device in a node description.
#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

double read_share(const Value& nvml, const char* key) {
  const auto value = nvml.find(key);
  if (!value) return 0;
  constexpr auto expected = "a share from 0 to 1";
  const double share = value->number(0, expected);
  if (share > 1) value->reject(expected);
  return share;
}

void read_missing(const Value& value, NvmlDescription& nvml) {
  constexpr std::string_view kField = "field:";
  for (const auto& entry : value.elements("an array of names")) {
    constexpr auto expected =
        "what nvml says of a device: a function's name, or a field such as \"field:74\"";
    const auto name = entry.text(expected);
    if (name.starts_with(kField)) {
      const auto digits = name.substr(kField.size());
      constexpr std::size_t kMostDigits = 4;
      if (digits.empty() || digits.size() > kMostDigits ||
          digits.find_first_not_of("0123456789") != std::string::npos) {
        entry.reject(expected);
      }
      nvml.missing_fields.insert(static_cast<unsigned>(std::stoul(digits)));
    } else if (calls_of(Library::nvml).contains(name) && name.starts_with("nvmlDeviceGet") &&
               !name.starts_with("nvmlDeviceGetHandle")) {
      nvml.missing_calls.insert(name);
    } else {
      entry.reject(expected);
    }
  }
}

/// One of several names; without any it is 0.
int read_name(const Value& nvml, const char* key, const std::map<std::string, int>& names) {
  const auto value = nvml.find(key);
  if (!value) return 0;
  std::string expected = "one of";
  for (const auto& [name, number] : names) expected += " \"" + name + "\"";
  const auto found = names.find(value->text(expected));
  if (found == names.end()) value->reject(expected);
  return found->second;
}

}  // namespace

NvmlDescription read_nvml(const std::optional<Value>& value, const DeviceDescription& device) {
  NvmlDescription nvml;
  nvml.uuid = device.uuid;
  nvml.sm_clock_mhz = device.clock_mhz;
  nvml.memory_clock_mhz = device.memory_clock_mhz;
  nvml.max_sm_clock_mhz = nvml.application_clock_mhz = device.clock_mhz;
  if (!value) return nvml;
  value->expect_object({"pstate",
                        "sm_clock_mhz",
                        "memory_clock_mhz",
                        "temperature_c",
                        "power_mw",
                        "reasons",
                        "sw_power_cap_share",
                        "sw_thermal_share",
                        "hw_thermal_share",
                        "hw_power_brake_share",
                        "pcie_generation",
                        "pcie_width",
                        "pcie_replays",
                        "processes",
                        "memory_used_bytes",
                        "compute_mode",
                        "persistence",
                        "vbios",
                        "mig_instances",
                        "ecc",
                        "uncorrected_ecc_errors",
                        "remap_pending",
                        "remap_failed",
                        "max_pcie_generation",
                        "max_pcie_width",
                        "max_sm_clock_mhz",
                        "application_clock_mhz",
                        "power_limit_mw",
                        "default_power_limit_mw",
                        "fabric",
                        "missing"});
  constexpr int kSlowestState = 15;
  nvml.pstate = value->integer_or("pstate", 0, nvml.pstate, kSlowestState);
  nvml.sm_clock_mhz = value->integer_or("sm_clock_mhz", 0, nvml.sm_clock_mhz);
  nvml.memory_clock_mhz = value->integer_or("memory_clock_mhz", 0, nvml.memory_clock_mhz);
  nvml.temperature_c = value->integer_or("temperature_c", 0, nvml.temperature_c);
  nvml.power_mw = value->integer_or("power_mw", 0, nvml.power_mw);
  if (const auto reasons = value->find("reasons")) {
    nvml.reasons = static_cast<unsigned long long>(reasons->integer(
        0, std::numeric_limits<long long>::max(), "a mask of bits, as an integer >= 0"));
  }
  nvml.sw_power_cap_share = read_share(*value, "sw_power_cap_share");
  nvml.sw_thermal_share = read_share(*value, "sw_thermal_share");
  nvml.hw_thermal_share = read_share(*value, "hw_thermal_share");
  nvml.hw_power_brake_share = read_share(*value, "hw_power_brake_share");
  nvml.pcie_generation = value->integer_or("pcie_generation", 1, nvml.pcie_generation);
  nvml.pcie_width = value->integer_or("pcie_width", 1, nvml.pcie_width);
  nvml.pcie_replays = value->integer_or("pcie_replays", 0, nvml.pcie_replays);
  if (const auto processes = value->find("processes")) {
    for (const auto& pid : processes->elements("an array of process ids")) {
      nvml.processes.push_back(static_cast<unsigned>(
          pid.integer(1, std::numeric_limits<int>::max(), "a process id above 0")));
    }
  }
  if (const auto used = value->find("memory_used_bytes")) {
    nvml.memory_used_bytes = static_cast<std::size_t>(used->integer(
        0, static_cast<long long>(device.memory_bytes), "bytes, not more than memory_bytes"));
  }
  using Names = std::map<std::string, int>;
  nvml.compute_mode = read_name(
      *value, "compute_mode", Names{{"default", 0}, {"prohibited", 2}, {"exclusive process", 3}});
  nvml.persistence = value->boolean_or("persistence", nvml.persistence);
  if (const auto vbios = value->find("vbios")) nvml.vbios = vbios->text("a version");
  if (value->find("mig_instances")) nvml.mig_instances = value->integer_or("mig_instances", 0, 0);
  nvml.ecc = value->boolean_or("ecc", nvml.ecc);
  nvml.uncorrected_ecc_errors = value->integer_or("uncorrected_ecc_errors", 0, 0);
  nvml.remap_pending = value->boolean_or("remap_pending", false);
  nvml.remap_failed = value->boolean_or("remap_failed", false);
  nvml.max_pcie_generation = value->integer_or("max_pcie_generation", 1, nvml.pcie_generation);
  nvml.max_pcie_width = value->integer_or("max_pcie_width", 1, nvml.pcie_width);
  nvml.max_sm_clock_mhz = value->integer_or("max_sm_clock_mhz", 0, nvml.max_sm_clock_mhz);
  nvml.application_clock_mhz =
      value->integer_or("application_clock_mhz", 0, nvml.application_clock_mhz);
  nvml.power_limit_mw = value->integer_or("power_limit_mw", 0, nvml.power_limit_mw);
  nvml.default_power_limit_mw =
      value->integer_or("default_power_limit_mw", 0, nvml.default_power_limit_mw);
  nvml.fabric = read_name(
      *value,
      "fabric",
      Names{{"not supported", 0}, {"not started", 1}, {"in progress", 2}, {"completed", 3}});
  if (const auto missing = value->find("missing")) read_missing(*missing, nvml);
  return nvml;
}

}  // namespace launchgap::fake
