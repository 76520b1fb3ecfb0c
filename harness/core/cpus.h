// Which CPUs a process or thread runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

using CpuList = std::vector<int>;  // ascending, without repeats

/// The CPUs on which this thread may run.
CpuList allowed_cpus();

/// Binds the calling thread; threads it starts later inherit that. False if the system refuses.
bool bind_thread(const CpuList& cpus);

/// The CPUs of a NUMA node, from sysfs; nothing if the node or sysfs is not there.
std::optional<CpuList> cpus_of_numa_node(int node);

/// "0-3,8" in both directions; parsing throws Error for any other text.
std::string cpu_list_text(const CpuList& cpus);
CpuList parse_cpu_list(std::string_view text);

/// The CPUs' last level of cache, L3 or L2, as the C library knows it.
std::optional<std::uint64_t> last_level_cache_bytes();

}  // namespace launchgap
