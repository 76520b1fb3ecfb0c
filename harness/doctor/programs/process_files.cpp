#include "harness/doctor/programs/process_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <unistd.h>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/doctor/libraries/elf_file.h"
#include "harness/doctor/libraries/library_copies.h"

namespace launchgap::doctor {
namespace {

constexpr std::size_t kMaxMaps = 32 << 20;
constexpr std::size_t kMaxLibraries = 512;
constexpr pid_t kMaxPid = 1 << 22;  // the kernel's PID_MAX_LIMIT

/// Others are nobody's business: environments hold secrets.
constexpr std::array kVariables = {"CONDA_PREFIX",
                                   "CUDA_DEVICE_ORDER",
                                   "CUDA_DISABLE_PTX_JIT",
                                   "CUDA_FORCE_PTX_JIT",
                                   "CUDA_HOME",
                                   "CUDA_MODULE_LOADING",
                                   "CUDA_MPS_PIPE_DIRECTORY",
                                   "CUDA_PATH",
                                   "CUDA_VISIBLE_DEVICES",
                                   "JAX_PLATFORMS",
                                   "JAX_PLATFORM_NAME",
                                   "LD_LIBRARY_PATH",
                                   "LD_PRELOAD",
                                   "NVIDIA_DRIVER_CAPABILITIES",
                                   "NVIDIA_VISIBLE_DEVICES",
                                   "VIRTUAL_ENV"};

std::string folder_of(pid_t pid) {
  return fmt::format("/proc/{}", pid);
}

/// The next line or field of `text`, up to `separator`, which is dropped.
std::string_view next(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

/// The device node of `system` that a path of a process is, if it is one of NVIDIA's.
std::optional<std::string> node_of(std::string_view path, const SystemFiles& system) {
  if (path.find("/dev/") == std::string_view::npos) return std::nullopt;
  std::string node = system.outside(std::string(path));
  for (const char* beginning : {"/dev/nvidia", "/dev/nvhost", "/dev/nvmap", "/dev/dxg"}) {
    if (node.starts_with(beginning)) return node;
  }
  return std::nullopt;
}

/// The path of a line of /proc/<pid>/maps: what follows address, rights, offset, device and inode.
std::string_view path_of(std::string_view line) {
  for (int field = 0; field < 5; ++field) {
    next(line, ' ');
    while (line.starts_with(' ')) line.remove_prefix(1);
  }
  return line;
}

void read_maps(const std::string& maps, const SystemFiles& system, ProcessFacts& facts) {
  bool driver = false;
  std::unordered_set<std::string_view> seen;
  for (std::string_view left = maps; !left.empty();) {
    std::string_view path = path_of(next(left, '\n'));
    if (!path.starts_with('/') || !seen.insert(path).second) continue;
    if (auto node = node_of(path, system)) {
      facts.nodes_mapped.insert(std::move(*node));
      continue;
    }
    constexpr std::string_view kDeleted = " (deleted)";
    const bool deleted = path.ends_with(kDeleted);
    if (deleted) path.remove_suffix(kDeleted.size());
    if (!is_cuda_library(path)) continue;
    driver = driver || library_stem(path) == "libcuda";
    const auto known = std::ranges::find(facts.libraries, path, &MappedLibrary::path);
    if (known == facts.libraries.end() && facts.libraries.size() < kMaxLibraries) {
      facts.libraries.push_back(
          {std::string(path.substr(path.rfind('/') + 1)), std::string(path), {}, deleted});
    }
  }
  ++facts.looks;
  if (driver) ++facts.looks_with_driver;
}

void read_descriptors(pid_t pid,
                      const SystemFiles& proc,
                      const SystemFiles& system,
                      ProcessFacts& facts) {
  const std::string folder = folder_of(pid) + "/fd";
  std::size_t count = 0;
  for (const std::string& descriptor : proc.entries(folder)) {
    if (++count > 4096) return;
    const auto target = proc.link(folder + "/" + descriptor);
    if (!target) continue;
    if (auto node = node_of(*target, system)) facts.nodes_open.insert(std::move(*node));
  }
}

std::map<std::string, std::string> read_environment(const std::string& text) {
  std::map<std::string, std::string> environment;
  for (std::string_view left = text; !left.empty();) {
    std::string_view variable = next(left, '\0');
    const std::string name(next(variable, '='));
    if (std::ranges::find(kVariables, name) != kVariables.end())
      environment.emplace(name, variable);
  }
  return environment;
}

void read_who_it_is(pid_t pid, const SystemFiles& proc, ProcessFacts& facts) {
  const std::string folder = folder_of(pid);
  // A process changes all of these when it executes another program.
  std::string executable = proc.link(folder + "/exe").value_or("");
  if (facts.pid == pid && executable == facts.executable) return;
  facts.pid = pid;
  facts.executable = std::move(executable);
  std::string command = proc.read(folder + "/cmdline", 4096).value_or("");
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::ranges::replace(command, '\0', ' ');
  facts.command = printable(command, 200);
  facts.environment = read_environment(proc.read(folder + "/environ", 1 << 20).value_or(""));
  try {
    // By the link itself, since the path may be one of another file system (a container's).
    facts.statically_linked = ElfFile(proc.at(folder + "/exe")).facts().statically_linked;
  } catch (const BadFile&) {
    facts.statically_linked.reset();
  }
}

/// By /proc/<pid>/task/<thread>/children: a child belongs to the thread that made it.
std::vector<pid_t> listed_children(pid_t pid, const SystemFiles& proc) {
  std::vector<pid_t> children;
  const std::string tasks = folder_of(pid) + "/task";
  for (const std::string& task : proc.entries(tasks)) {
    const std::string list = proc.read(tasks + "/" + task + "/children").value_or("");
    for (std::string_view left = list; !left.empty();) {
      if (const auto child = number_of_text<pid_t>(next(left, ' '))) children.push_back(*child);
    }
  }
  return children;
}

/// For kernels without such lists (CONFIG_PROC_CHILDREN).
std::multimap<pid_t, pid_t> children_by_parent(const SystemFiles& proc) {
  std::multimap<pid_t, pid_t> children;
  for (const std::string& entry : proc.entries("/proc")) {
    const auto pid = number_of_text<pid_t>(entry);
    if (!pid) continue;
    // "12 (name with any characters) S 1 …"
    const std::string stat = proc.read(folder_of(*pid) + "/stat", 4096).value_or("");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 4) continue;
    std::string_view left = std::string_view(stat).substr(name_end + 4);
    if (const auto parent = number_of_text<pid_t>(next(left, ' '))) children.emplace(*parent, *pid);
  }
  return children;
}

/// Why nothing can be seen of it.
std::string why_not(pid_t pid, const SystemFiles& proc) {
  const std::string folder = folder_of(pid);
  const auto status = proc.read(folder + "/status");
  if (!status) return fmt::format("there is no process {}", pid);
  if (header_field(*status, "State").value_or("").starts_with('Z')) {
    return fmt::format(
        "process {} has ended; it is a zombie, which its parent has not collected yet", pid);
  }
  if (header_field(*status, "Kthread").value_or("0") == "1" || !header_field(*status, "VmSize")) {
    return fmt::format("process {} is a thread of the kernel, which runs no program", pid);
  }
  const int file = open(proc.at(folder + "/maps").c_str(), O_RDONLY | O_CLOEXEC);
  const int error = file < 0 ? errno : 0;
  if (file >= 0) close(file);
  const std::string_view owner = header_field(*status, "Uid").value_or("?");
  const std::string uid(owner.substr(0, owner.find('\t')));
  if (error == EACCES || error == EPERM || error == 0) {
    if (uid != std::to_string(geteuid())) {
      return fmt::format(
          "process {} belongs to another user (uid {}); only that user and root can look into it",
          pid,
          printable(uid));
    }
    return fmt::format("process {} lets nobody look into it", pid);
  }
  return fmt::format("process {} cannot be looked into: {}", pid, std::strerror(error));
}

}  // namespace

pid_t parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (failed == std::errc::result_out_of_range ||
      (failed == std::errc() && end == text.data() + text.size() && pid > kMaxPid)) {
    throw UsageError(
        "--pid {} is no process id: they go up to {} on Linux", printable(text), kMaxPid);
  }
  if (failed != std::errc() || end != text.data() + text.size() || pid <= 0) {
    throw UsageError("--pid '{}' is no process id: a positive number is", printable(text));
  }
  return pid;
}

bool look_at_process(pid_t pid,
                     const SystemFiles& proc,
                     const SystemFiles& system,
                     ProcessFacts& facts) {
  // Empty while a process ends, and for a thread of the kernel.
  const auto maps = proc.read(folder_of(pid) + "/maps", kMaxMaps);
  if (!maps || maps->empty()) return false;
  read_who_it_is(pid, proc, facts);
  read_maps(*maps, system, facts);
  read_descriptors(pid, proc, system, facts);
  return true;
}

std::vector<pid_t> process_tree(pid_t pid, const SystemFiles& proc, std::size_t limit) {
  const bool listed = proc.exists(fmt::format("/proc/{0}/task/{0}/children", pid));
  const auto parents = listed ? std::multimap<pid_t, pid_t>{} : children_by_parent(proc);
  std::vector<pid_t> tree = {pid};
  for (std::size_t i = 0; i < tree.size() && tree.size() < limit; ++i) {
    std::vector<pid_t> children;
    if (listed) children = listed_children(tree[i], proc);
    const auto [first, last] = parents.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) children.push_back(child->second);
    for (const pid_t child : children) {
      if (tree.size() < limit && std::ranges::find(tree, child) == tree.end())
        tree.push_back(child);
    }
  }
  return tree;
}

SystemFiles processes_of(const SystemFiles& system) {
  if (!system.simulated()) return system;
  for (const std::string& entry : system.entries("/proc")) {
    if (entry.find_first_not_of("0123456789") == std::string::npos) return system;
  }
  return SystemFiles();
}

ProgramFacts look_at_program(pid_t pid,
                             const SystemFiles& system,
                             const std::function<std::set<pid_t>()>& computing) {
  constexpr useconds_t kBetweenLooks_us = 200'000;
  const SystemFiles proc = processes_of(system);
  std::map<pid_t, ProcessFacts> seen;
  // While a process calls execve it has no mappings for a moment.
  constexpr int kLooks = 5;
  for (int look = 1; !look_at_process(pid, proc, system, seen[pid]); ++look) {
    if (look == kLooks || !proc.exists(folder_of(pid))) throw Error(why_not(pid, proc));
    usleep(kBetweenLooks_us / kLooks);
  }
  usleep(kBetweenLooks_us);
  const std::vector<pid_t> tree = process_tree(pid, proc);
  for (const pid_t member : tree) look_at_process(member, proc, system, seen[member]);
  const std::set<pid_t> listed = computing ? computing() : std::set<pid_t>{};

  ProgramFacts program;
  program.command = seen[pid].command;
  for (const pid_t member : tree) {
    ProcessFacts& facts = seen[member];
    facts.listed_by_nvml = listed.contains(member);
    if (facts.looks > 0) program.processes.push_back(std::move(facts));
  }
  program.limitations.push_back(
      "Libraries that it did not find are not known: start it with `launchgap doctor -- COMMAND` "
      "to see them.");
  return program;
}

}  // namespace launchgap::doctor
