#include "harness/measure/telemetry.h"

#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/cuda/nvml.h"
#include "harness/measure/cpu_counters.h"

namespace launchgap {
namespace {

constexpr TelemetryQuantity kQuantities[] = {
    {"involuntary_switches", "1", true, "Times that the launching thread was taken off its CPU."},
    {"voluntary_switches", "1", true, "Times that the launching thread waited for something."},
    {"migrations", "1", true, "Moves of the launching thread to another CPU."},
    {"page_faults", "1", true, "Page faults of the launching thread, without those from disk."},
    {"stolen_ms", "ms", true, "Time that a hypervisor kept the launching CPU from its machine."},
    {"sibling_busy_ms",
     "ms",
     true,
     "Time that the other hardware threads of the launching core were busy, together."},
    {"cpu_mhz", "MHz", false, "Frequency of the CPU that launches, as the kernel tells it."},
    {"deep_idle_us",
     "us",
     true,
     "Time that the launching CPU spent in idle states deeper than the first."},
    {"performance_state", "1", false, "The GPU's P-state: 0 is the fastest."},
    {"sm_clock_mhz", "MHz", false, "Clock of the multiprocessors."},
    {"memory_clock_mhz", "MHz", false, "Clock of the GPU's memory."},
    {"temperature_c", "degC", false, "Temperature of the GPU."},
    {"power_w", "W", false, "Power, as the driver averages it."},
    {"energy_j", "J", true, "Energy since the driver was loaded."},
    {"clock_reasons", "bits", false, "Why the clocks are not higher; bits as NVML names them."},
    {"pcie_generation", "1", false, "PCIe generation of the link, just now."},
    {"pcie_width", "lanes", false, "Lanes of the PCIe link, just now."},
    {"held_by_power_cap_ns", "ns", true, "Time that the power limit held the clocks down."},
    {"held_by_sync_boost_ns", "ns", true, "Time that synchronised boost held the clocks down."},
    {"held_by_sw_thermal_ns", "ns", true, "Time that the driver held the clocks down for heat."},
    {"held_by_hw_thermal_ns", "ns", true, "Time that the GPU itself slowed down for heat."},
    {"held_by_power_brake_ns", "ns", true, "Time that an external power brake held the clocks."},
    {"pcie_replays", "1", true, "Packets that the PCIe link had to send again."},
    {"other_processes", "1", false, "Other processes that compute on the GPU."},
};

/// Kernels with CONFIG_SCHED_DEBUG tell.
std::optional<double> read_migrations() {
  std::ifstream file("/proc/thread-self/sched");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("se.nr_migrations"))
      return std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return std::nullopt;
}

/// Of the calling thread and its CPU.
void read_host(const SystemFiles& system, TelemetryReading& reading) {
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    reading.values.emplace_back("involuntary_switches", usage.ru_nivcsw);
    reading.values.emplace_back("voluntary_switches", usage.ru_nvcsw);
    reading.values.emplace_back("page_faults", usage.ru_minflt);
  }
  const auto add = [&](std::string_view key, const std::optional<double>& value) {
    if (value) reading.values.emplace_back(key, *value);
  };
  add("migrations", read_migrations());
  const int cpu = sched_getcpu();
  if (cpu < 0) return;
  const CpuCounters counters = read_cpu_counters(system, cpu);
  add("stolen_ms", counters.stolen_ms);
  add("sibling_busy_ms", counters.sibling_busy_ms);
  add("cpu_mhz", counters.mhz);
  add("deep_idle_us", counters.deep_idle_us);
}

}  // namespace

std::span<const TelemetryQuantity> telemetry_quantities() {
  return kQuantities;
}

Telemetry::Telemetry(const DeviceFacts& device) {
  if (!is_gpu(device)) return;
  try {
    gpu_ = std::make_unique<cuda::GpuState>(device);
  } catch (const Error& error) {
    device_problem_ = error.what();
  }
}

Telemetry::~Telemetry() = default;

TelemetryReading Telemetry::read() {
  TelemetryReading reading{now_ns(), {}};
  read_host(system_, reading);
  if (!gpu_) return reading;
  for (const cuda::Gauge& gauge : gpu_->read())
    reading.values.emplace_back(gauge.name, gauge.value);
  return reading;
}

std::map<std::string, std::string> Telemetry::missing() const {
  const int cpu = sched_getcpu();
  return cpu < 0 ? std::map<std::string, std::string>() : missing_cpu_counters(system_, cpu);
}

std::map<std::string, std::string> Telemetry::device_settings() const {
  if (!gpu_) return {};
  return gpu_->settings();
}

std::optional<LoadedLibrary> Telemetry::loaded_library() const {
  if (!gpu_) return std::nullopt;
  return gpu_->loaded_library();
}

}  // namespace launchgap
