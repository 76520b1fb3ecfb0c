// What the system counts for the CPU that launches: time that others had it, that its core had
// other work, that it slept deeply; and how fast it runs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/core/cpus.h"
#include "harness/core/system_files.h"

namespace launchgap {

/// The hardware threads of a CPU's core, itself among them; empty where the system does not tell.
CpuList threads_of_core(const SystemFiles& system, int cpu);

/// What the system does not tell is not there. Times only ever grow.
struct CpuCounters {
  std::optional<double> stolen_ms;        // by a hypervisor
  std::optional<double> sibling_busy_ms;  // of the core's other hardware threads, together
  std::optional<double> deep_idle_us;     // in idle states deeper than the first
  std::optional<double> mhz;              // now
};
CpuCounters read_cpu_counters(const SystemFiles& system, int cpu);

/// Why the system does not tell some of it: by the quantity of telemetry, in one sentence.
std::map<std::string, std::string> missing_cpu_counters(const SystemFiles& system, int cpu);

}  // namespace launchgap
