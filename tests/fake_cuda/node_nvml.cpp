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

}  // namespace

NvmlDescription read_nvml(const std::optional<Value>& value, const DeviceDescription& device) {
  NvmlDescription nvml;
  nvml.sm_clock_mhz = device.clock_mhz;
  nvml.memory_clock_mhz = device.memory_clock_mhz;
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
  if (const auto missing = value->find("missing")) read_missing(*missing, nvml);
  return nvml;
}

}  // namespace launchgap::fake
