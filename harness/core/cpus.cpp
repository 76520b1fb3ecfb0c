#include "harness/core/cpus.h"

#include <algorithm>
#include <charconv>
#include <sched.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/system_files.h"

namespace launchgap {

CpuList allowed_cpus() {
  // The mask may be wider than cpu_set_t's 1,024 CPUs: grow until the kernel is content.
  for (int count = 1024; count <= 1 << 20; count *= 4) {
    cpu_set_t* const set = CPU_ALLOC(count);
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set);
    CpuList cpus;
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int cpu = 0; cpu < count; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
      }
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;
  }
  throw Error(with_errno("the CPUs of this process cannot be read"));
}

bool bind_thread(const CpuList& cpus) {
  if (cpus.empty()) return false;
  const int count = cpus.back() + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const bool bound = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

std::optional<CpuList> cpus_of_numa_node(int node) {
  if (node < 0) return std::nullopt;
  const auto text = SystemFiles::of_this_system().read(
      fmt::format("/sys/devices/system/node/node{}/cpulist", node));
  if (!text || text->empty()) return std::nullopt;
  return parse_cpu_list(*text);
}

std::string cpu_list_text(const CpuList& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

CpuList parse_cpu_list(std::string_view text) {
  CpuList cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value > 1 << 20) {
      throw Error("'{}' is not a list of CPUs like 0-3,8", text);
    }
    at = next;
    return value;
  };
  while (at != end) {
    const int first = number();
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at != end && *at == ',') {
      ++at;
    } else if (at != end) {
      throw Error("'{}' is not a list of CPUs like 0-3,8", text);
    }
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<std::uint64_t> last_level_cache_bytes() {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  if (bytes <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace launchgap
