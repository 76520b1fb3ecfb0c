#include "harness/measure/cpu_counters.h"

#include <sstream>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

std::string folder_of(int cpu) {
  return fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
}

std::optional<double> number_in(const SystemFiles& system, const std::string& path) {
  const auto text = system.read(path, 64);
  if (!text) return std::nullopt;
  std::istringstream stream(*text);
  double value = 0;
  if (!(stream >> value) || value < 0) return std::nullopt;
  return value;
}

/// Of a CPU's line in /proc/stat, in ticks: user, nice, system, idle, iowait, irq, softirq, steal.
struct CpuTicks {
  double busy = 0;  // all but idle, iowait and steal
  double stolen = 0;
};

std::optional<CpuTicks> ticks_of(std::string_view stat, int cpu) {
  const std::string name = fmt::format("\ncpu{} ", cpu);
  const std::size_t at = stat.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = stat.substr(at + name.size());
  std::istringstream numbers{std::string(line.substr(0, line.find('\n')))};
  double user = 0, nice = 0, kernel = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0;
  if (!(numbers >> user >> nice >> kernel >> idle >> iowait >> irq >> softirq >> stolen))
    return std::nullopt;
  return CpuTicks{user + nice + kernel + irq + softirq, stolen};
}

/// State 0 is polling and 1 the shallowest sleep; the deeper ones are slow to wake from.
std::optional<double> deep_idle_us(const SystemFiles& system, int cpu) {
  std::optional<double> sum_us;
  for (int state = 2;; ++state) {
    const auto time_us =
        number_in(system, fmt::format("{}/cpuidle/state{}/time", folder_of(cpu), state));
    if (!time_us) return sum_us;
    sum_us = sum_us.value_or(0) + *time_us;
  }
}

}  // namespace

CpuList threads_of_core(const SystemFiles& system, int cpu) {
  const auto text = system.read(folder_of(cpu) + "/topology/thread_siblings_list", 4096);
  if (!text) return {};
  try {
    return parse_cpu_list(*text);
  } catch (const Error&) {
    return {};
  }
}

CpuCounters read_cpu_counters(const SystemFiles& system, int cpu) {
  static const double tick_ms = 1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  CpuCounters counters;
  const std::string stat = system.read("/proc/stat").value_or("");
  if (const auto own = ticks_of(stat, cpu)) counters.stolen_ms = own->stolen * tick_ms;
  for (const int sibling : threads_of_core(system, cpu)) {
    if (sibling == cpu) continue;
    if (const auto ticks = ticks_of(stat, sibling))
      counters.sibling_busy_ms = counters.sibling_busy_ms.value_or(0) + ticks->busy * tick_ms;
  }
  counters.deep_idle_us = deep_idle_us(system, cpu);
  if (const auto khz = number_in(system, folder_of(cpu) + "/cpufreq/scaling_cur_freq"))
    counters.mhz = *khz / 1000;
  return counters;
}

std::map<std::string, std::string> missing_cpu_counters(const SystemFiles& system, int cpu) {
  const CpuCounters counters = read_cpu_counters(system, cpu);
  std::map<std::string, std::string> missing;
  if (!counters.stolen_ms) {
    missing["stolen_ms"] =
        fmt::format("/proc/stat has no line of CPU {} with the time that was stolen", cpu);
  }
  if (!counters.sibling_busy_ms) {
    const CpuList threads = threads_of_core(system, cpu);
    missing["sibling_busy_ms"] =
        threads.empty()
            ? fmt::format("{}/topology does not tell which CPUs share a core", folder_of(cpu))
        : threads.size() == 1 ? fmt::format("CPU {} shares its core with no other", cpu)
                              : "/proc/stat does not have the core's other CPUs";
  }
  if (!counters.deep_idle_us) {
    const std::string folder = folder_of(cpu) + "/cpuidle";
    missing["deep_idle_us"] =
        system.exists(folder)
            ? fmt::format("{} has no idle state that is deeper than the first", folder)
            : fmt::format("{} is not there: the kernel, or a hypervisor, shows no idle states",
                          folder);
  }
  if (!counters.mhz) {
    missing["cpu_mhz"] = fmt::format(
        "{}/cpufreq is not there: the kernel, or a hypervisor, shows no frequency", folder_of(cpu));
  }
  return missing;
}

}  // namespace launchgap
