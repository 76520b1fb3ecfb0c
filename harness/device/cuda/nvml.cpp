#include "harness/device/cuda/nvml.h"

#include <array>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

struct CounterField {
  nvml::Field field;
  std::string_view name;
};

constexpr CounterField kFields[] = {{nvml::kSwPowerCapNs, "held_by_power_cap_ns"},
                                    {nvml::kSyncBoostNs, "held_by_sync_boost_ns"},
                                    {nvml::kSwThermalNs, "held_by_sw_thermal_ns"},
                                    {nvml::kHwThermalNs, "held_by_hw_thermal_ns"},
                                    {nvml::kHwPowerBrakeNs, "held_by_power_brake_ns"},
                                    {nvml::kPcieReplays, "pcie_replays"}};

std::optional<double> number(const nvml::FieldValue& field) {
  if (field.result != nvml::kSuccess) return std::nullopt;
  switch (field.type) {
    case nvml::kDouble:
      return field.value.as_double;
    case nvml::kUnsignedInt:
      return field.value.as_unsigned;
    case nvml::kUnsignedLong:
      return static_cast<double>(field.value.as_unsigned_long);
    case nvml::kUnsignedLongLong:
      return static_cast<double>(field.value.as_unsigned_long_long);
    case nvml::kSignedLongLong:
      return static_cast<double>(field.value.as_signed_long_long);
    case nvml::kSignedInt:
      return field.value.as_int;
    case nvml::kUnsignedShort:
      return field.value.as_unsigned_short;
  }
  return std::nullopt;
}

/// A number by a function whose last argument takes it; absent where there is no such function.
template <class Value, class... Types, class... Arguments>
std::optional<Value> asked(nvml::Result (*function)(Types...), Arguments... arguments) {
  Value value{};
  if (!function || function(arguments..., &value) != nvml::kSuccess) return std::nullopt;
  return value;
}

/// A text, likewise.
template <class... Types, class... Arguments>
std::optional<std::string> text(nvml::Result (*function)(Types...), Arguments... arguments) {
  std::array<char, 128> text{};
  if (!function || function(arguments..., text.data(), text.size() - 1) != nvml::kSuccess)
    return std::nullopt;
  return std::string(text.data());
}

}  // namespace

GpuState::GpuState(const DeviceFacts& facts) : nvml_(Nvml::get()) {
  const nvml::Result by_uuid = nvml_.nvmlDeviceGetHandleByUUID(facts.uuid.c_str(), &device_);
  by_uuid_ = by_uuid == nvml::kSuccess;
  if (by_uuid_) return;
  if (facts.pci_bus_id && nvml_.nvmlDeviceGetHandleByPciBusId_v2 &&
      nvml_.nvmlDeviceGetHandleByPciBusId_v2(facts.pci_bus_id->c_str(), &device_) ==
          nvml::kSuccess) {
    return;
  }
  nvml_.check(by_uuid, "nvmlDeviceGetHandleByUUID");
}

std::vector<Gauge> GpuState::read() const {
  std::vector<Gauge> gauges;
  const auto add = [&](std::string_view name, const auto& value, double scale = 1) {
    if (value) gauges.push_back({name, static_cast<double>(*value) * scale});
    return value.has_value();
  };
  const auto ask = [&]<class Value>(nvml::Result (*function)(nvml::Device, Value*)) {
    return asked<Value>(function, device_);
  };
  add("performance_state", ask(nvml_.nvmlDeviceGetPerformanceState));
  add("sm_clock_mhz", asked<unsigned>(nvml_.nvmlDeviceGetClockInfo, device_, nvml::kSmClock));
  add("memory_clock_mhz",
      asked<unsigned>(nvml_.nvmlDeviceGetClockInfo, device_, nvml::kMemoryClock));
  add("temperature_c",
      asked<unsigned>(nvml_.nvmlDeviceGetTemperature, device_, nvml::kGpuTemperature));
  add("power_w", ask(nvml_.nvmlDeviceGetPowerUsage), 1e-3);
  add("energy_j", ask(nvml_.nvmlDeviceGetTotalEnergyConsumption), 1e-3);
  if (!add("clock_reasons", ask(nvml_.nvmlDeviceGetCurrentClocksEventReasons)))
    add("clock_reasons", ask(nvml_.nvmlDeviceGetCurrentClocksThrottleReasons));
  add("pcie_generation", ask(nvml_.nvmlDeviceGetCurrPcieLinkGeneration));
  add("pcie_width", ask(nvml_.nvmlDeviceGetCurrPcieLinkWidth));
  add_fields(gauges);
  add_other_processes(gauges);
  return gauges;
}

std::map<std::string, std::string> GpuState::settings() const {
  std::map<std::string, std::string> settings;
  const auto put = [&](const char* name, const std::optional<std::string>& value) {
    if (value && !value->empty()) settings[name] = *value;
  };
  put("driver", text(nvml_.nvmlSystemGetDriverVersion));
  put("vbios", text(nvml_.nvmlDeviceGetVbiosVersion, device_));
  auto milliwatts = asked<unsigned>(nvml_.nvmlDeviceGetEnforcedPowerLimit, device_);
  if (!milliwatts) milliwatts = asked<unsigned>(nvml_.nvmlDeviceGetPowerManagementLimit, device_);
  if (milliwatts) put("power_limit_w", fmt::format("{}", *milliwatts / 1000.0));
  const auto set = asked<unsigned>(nvml_.nvmlDeviceGetApplicationsClock, device_, nvml::kSmClock);
  const auto most = asked<unsigned>(nvml_.nvmlDeviceGetMaxClockInfo, device_, nvml::kSmClock);
  if (set && most && *set < *most) put("application_clock_mhz", fmt::format("{}", *set));
  const auto on_or_off = [](bool on) { return std::string(on ? "on" : "off"); };
  if (const auto mode = asked<int>(nvml_.nvmlDeviceGetPersistenceMode, device_))
    put("persistence", on_or_off(*mode != 0));
  unsigned now = 0, pending = 0;
  if (nvml_.nvmlDeviceGetMigMode &&
      nvml_.nvmlDeviceGetMigMode(device_, &now, &pending) == nvml::kSuccess)
    put("mig", on_or_off(now != 0));
  return settings;
}

LoadedLibrary GpuState::loaded_library() const {
  return nvml_.facts;
}

void GpuState::add_fields(std::vector<Gauge>& gauges) const {
  std::array<nvml::FieldValue, std::size(kFields)> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i].field = kFields[i].field;
  if (!nvml_.nvmlDeviceGetFieldValues ||
      nvml_.nvmlDeviceGetFieldValues(device_, static_cast<int>(values.size()), values.data()) !=
          nvml::kSuccess) {
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (const auto value = number(values[i])) gauges.push_back({kFields[i].name, *value});
  }
}

/// Processes that compute on the GPU besides this one, which is always one of them: in a
/// container NVML tells other process ids than ours. Where it shows none it shows nothing here;
/// and what was found by its PCI address may be a part of the GPU that answers.
void GpuState::add_other_processes(std::vector<Gauge>& gauges) const {
  std::array<nvml::ProcessInfo, 64> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (!nvml_.nvmlDeviceGetComputeRunningProcesses_v3 || !by_uuid_) return;
  const nvml::Result code =
      nvml_.nvmlDeviceGetComputeRunningProcesses_v3(device_, &count, processes.data());
  if ((code == nvml::kSuccess || code == nvml::kInsufficientSize) && count > 0)
    gauges.push_back({"other_processes", static_cast<double>(count) - 1});
}

const Nvml& Nvml::get() {
  static const Nvml loaded = [] {
    const SharedLibrary file = SharedLibrary::open(
        {"NVML", "LAUNCHGAP_LIBNVML", {"libnvidia-ml.so.1"}, {}, /*loader_alone=*/true});
    Nvml library;
    LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    library.check(library.nvmlInit_v2(), "nvmlInit_v2");
    std::array<char, 80> version{};
    if (library.nvmlSystemGetNVMLVersion &&
        library.nvmlSystemGetNVMLVersion(version.data(), version.size() - 1) == nvml::kSuccess) {
      library.facts.version = version.data();
    }
    return library;
  }();
  return loaded;
}

void Nvml::check(nvml::Result code, const char* call) const {
  if (code == nvml::kSuccess) return;
  const char* const text = nvmlErrorString(code);
  throw LibraryError("NVML", call, code, text ? text : "no text for it", false);
}

}  // namespace launchgap::cuda
