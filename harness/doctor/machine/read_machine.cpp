#include "harness/doctor/machine/read_machine.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <regex>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/cuda/nvml_inventory.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostGpus = 256;
constexpr std::size_t kMostNodes = 64;
constexpr std::size_t kMostXids = 16;

std::optional<long> number(const std::optional<std::string>& text, int base = 10) {
  std::string_view rest = text ? std::string_view(*text) : "";
  if (base == 16 && rest.starts_with("0x")) rest.remove_prefix(2);
  return take_number<long>(rest, base);
}

/// sysfs says "255" where it does not know the width, and "Unknown" for the speed.
std::optional<int> lanes(const std::optional<std::string>& text) {
  const auto value = number(text);
  if (!value || *value < 1 || *value > 32) return std::nullopt;
  return static_cast<int>(*value);
}

/// "16.0 GT/s PCIe".
std::optional<double> transfers(const std::optional<std::string>& text) {
  std::string_view rest = text ? std::string_view(*text) : "";
  const std::optional<double> value = take_number<double>(rest);
  return value && (*value <= 0 || *value > 1000) ? std::nullopt : value;
}

/// "0000:07:00.0"; the domain can be longer.
bool is_pci_address(const std::string& name) {
  return name.size() >= 12 && name.size() <= 16 &&
         name.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

std::vector<PciController> pci_gpus(const SystemFiles& files) {
  const std::string folder = "/sys/bus/pci/devices";
  std::vector<PciController> gpus;
  for (const std::string& address : files.entries(folder)) {
    if (gpus.size() == kMostGpus) break;
    if (!is_pci_address(address)) continue;
    const std::string device = folder + "/" + address;
    constexpr long kNvidia = 0x10de, kVga = 0x0300, k3d = 0x0302;
    if (number(files.read(device + "/vendor"), 16) != kNvidia) continue;
    const long kind = number(files.read(device + "/class"), 16).value_or(0) >> 8;
    if (kind != kVga && kind != k3d) continue;
    // A virtual function is a slice for a virtual machine, not a GPU of this one.
    if (files.exists(device + "/physfn")) continue;
    PciController gpu;
    gpu.address = address;
    gpu.device_id = static_cast<int>(number(files.read(device + "/device"), 16).value_or(0));
    if (const auto driver = files.link(device + "/driver"))
      gpu.bound_to = printable(fs::path(*driver).filename().string(), 60);
    gpu.width = lanes(files.read(device + "/current_link_width"));
    gpu.max_width = lanes(files.read(device + "/max_link_width"));
    gpu.speed_gts = transfers(files.read(device + "/current_link_speed"));
    gpu.max_speed_gts = transfers(files.read(device + "/max_link_speed"));
    gpus.push_back(gpu);
  }
  return gpus;
}

void read_modules(const SystemFiles& files, Machine& machine) {
  const std::string modules = "\n" + files.read("/proc/modules").value_or("");
  machine.uvm_module = modules.find("\nnvidia_uvm ") != std::string::npos;
  machine.nouveau_module = modules.find("\nnouveau ") != std::string::npos;
  const auto version = files.read("/proc/driver/nvidia/version");
  machine.nvidia_module = version || modules.find("\nnvidia ") != std::string::npos;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 …", or "NVIDIA UNIX Open
  // Kernel Module for x86_64  580.65.06  Release Build …".
  static const std::regex pattern(R"(NVRM version:.*?(Open )?Kernel Module\s.*?(\d+(?:\.\d+)+))");
  const std::string line = version.value_or("").substr(0, 512);
  if (std::smatch match; std::regex_search(line, match, pattern)) {
    machine.module_version = Version::parse(match[2].str());
    machine.open_module = match[1].matched;
  }
  static const std::regex restricted(R"((?:^|\n)RmProfilingAdminOnly: (\d))");
  const std::string parameters = files.read("/proc/driver/nvidia/params", 65536).value_or("");
  if (std::smatch match; std::regex_search(parameters, match, restricted))
    machine.profiling_needs_root = match[1] != "0";
}

std::string mode_text(mode_t mode, uid_t user, gid_t group) {
  std::string text = S_ISCHR(mode) ? "c" : S_ISLNK(mode) ? "l" : S_ISDIR(mode) ? "d" : "-";
  constexpr char kLetters[] = "rwxrwxrwx";
  for (int i = 0; i < 9; ++i) text += mode & (0400 >> i) ? kLetters[i] : '-';
  return fmt::format("{} {}:{}", text, user, group);
}

DeviceNode node_at(const SystemFiles& files, const std::string& path) {
  DeviceNode node;
  node.path = path;
  struct stat status {};
  if (stat(files.at(path).c_str(), &status) == 0) {
    node.exists = true;
    node.mode = mode_text(status.st_mode, status.st_uid, status.st_gid);
  } else {
    node.open_error = errno;
  }
  return node;
}

/// "Device Minor" of a GPU, by its PCI address.
std::optional<long> minor_of(const SystemFiles& files, const std::string& address) {
  const std::string text =
      files.read("/proc/driver/nvidia/gpus/" + address + "/information", 65536).value_or("");
  const auto minor = number(std::string(header_field(text, "Device Minor").value_or("")));
  return minor && *minor >= 0 && *minor <= 9999 ? minor : std::nullopt;
}

std::vector<DeviceNode> device_nodes(const SystemFiles& files, const Machine& machine) {
  std::vector<std::string> paths = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  std::vector<long> minors;
  for (const PciController& gpu : machine.gpus) {
    if (gpu.minor) minors.push_back(*gpu.minor);
  }
  for (const std::string& name : files.entries("/dev")) {
    const std::string prefix = "nvidia";
    if (!name.starts_with(prefix) || name.size() == prefix.size() ||
        name.size() > prefix.size() + 4)
      continue;
    const std::string digits = name.substr(prefix.size());
    if (std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
      minors.push_back(std::stol(digits));
  }
  std::ranges::sort(minors);
  minors.erase(std::unique(minors.begin(), minors.end()), minors.end());
  if (minors.size() > kMostNodes) minors.resize(kMostNodes);
  for (const long minor : minors) paths.push_back(fmt::format("/dev/nvidia{}", minor));
  std::vector<DeviceNode> nodes;
  for (const std::string& path : paths) nodes.push_back(node_at(files, path));
  return nodes;
}

std::string container_of(const SystemFiles& files) {
  if (files.exists("/.singularity.d")) return "Apptainer";
  if (files.exists("/run/.containerenv")) return "podman";
  if (files.exists("/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (files.exists("/.dockerenv")) return "docker";
  const std::string groups = files.read("/proc/1/cgroup", 65536).value_or("");
  for (const auto& [word, name] : {std::pair{"kubepods", "kubernetes"},
                                   {"docker", "docker"},
                                   {"containerd", "containerd"},
                                   {"lxc", "LXC"}}) {
    if (groups.find(word) != std::string::npos) return name;
  }
  // systemd's convention, by those that follow it.
  const char* const kind = std::getenv("container");
  for (const char* name : {"docker", "podman", "oci", "lxc", "systemd-nspawn", "kube"}) {
    if (kind && std::string_view(kind) == name) return name;
  }
  return "";
}

std::vector<Toolkit> toolkits_of(const SystemFiles& files, const Machine& machine) {
  std::vector<Toolkit> found;
  const auto add = [&](const std::string& pointed_by, const std::string& path) {
    std::error_code failed;
    const fs::path real = fs::canonical(files.at(path), failed);
    found.push_back({pointed_by,
                     printable(failed ? path : files.outside(real)),
                     failed ? std::nullopt : toolkit_version(files, path)});
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string value = variable_in(machine.environment, variable);
    if (!value.empty()) add(variable, value);
  }
  const std::string folders = variable_in(machine.environment, "PATH");
  for (const std::string_view folder : parts_of(folders, ":")) {
    const fs::path nvcc = fs::path(folder) / "nvcc";
    if (!files.exists(nvcc)) continue;
    std::error_code failed;
    const fs::path real = fs::canonical(files.at(nvcc), failed);
    add("nvcc of PATH", files.outside(real.parent_path().parent_path()));
    break;
  }
  if (files.exists("/usr/local/cuda")) add("/usr/local/cuda", "/usr/local/cuda");
  return found;
}

/// The kernel's messages, as root or where the system lets everybody read them. A device gives one
/// message a read, and the file of a test all of them.
std::string kernel_messages(const SystemFiles& files) {
  const int file = open(files.at("/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return "";
  constexpr std::size_t kMostBytes = 8 << 20;
  std::string text;
  std::array<char, 8192> chunk;
  for (int skipped = 0; text.size() < kMostBytes && skipped < 1000;) {
    const ssize_t n = ::read(file, chunk.data(), chunk.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) {  // messages that were overwritten
      ++skipped;
      continue;
    }
    if (n <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(n));
  }
  close(file);
  return text;
}

std::vector<Xid> read_xids(const SystemFiles& files) {
  // "NVRM: Xid (PCI:0000:07:00): 79, pid=1234, GPU has fallen off the bus."
  static const std::regex pattern(
      R"(NVRM: Xid \(PCI:([0-9a-fA-F:.]{1,20})\): (\d{1,4}),? ?(.{0,160}))");
  const std::string text = kernel_messages(files);
  std::vector<Xid> xids;
  // From the end, since the last ones count and there may be very many.
  std::size_t tried = 0;
  for (std::size_t at = text.rfind("NVRM: Xid");
       at != std::string::npos && xids.size() < kMostXids && tried < 1000;
       at = at == 0 ? std::string::npos : text.rfind("NVRM: Xid", at - 1), ++tried) {
    const std::string line = text.substr(at, std::min<std::size_t>(text.find('\n', at) - at, 256));
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) continue;
    xids.push_back({match[1], std::stoi(match[2]), printable(match[3].str())});
  }
  std::ranges::reverse(xids);
  return xids;
}

}  // namespace

std::optional<Version> toolkit_version(const SystemFiles& files, const std::string& path) {
  if (const auto text = files.read(path + "/version.json", 65536)) {
    const Json json = Json::parse(*text, nullptr, false);
    const auto cuda = maybe<Json>(json, "cuda");
    if (const auto version = cuda ? maybe<std::string>(*cuda, "version") : std::nullopt)
      return Version::parse(*version);
  }
  static const std::regex line(R"(CUDA Version (\d+\.\d+(?:\.\d+)?))");
  std::smatch match;
  const std::string text = files.read(path + "/version.txt", 512).value_or("");
  if (std::regex_search(text, match, line)) return Version::parse(match[1].str());
  const std::string macro = "#define CUDA_VERSION ";
  const std::string header = files.read(path + "/include/cuda.h").value_or("");
  const std::size_t at = header.find(macro);
  if (at == std::string::npos) return std::nullopt;
  const long version = number(header.substr(at + macro.size(), 8)).value_or(0);
  if (version < 1000 || version > 999'990) return std::nullopt;
  return Version::parse(fmt::format("{}.{}", version / 1000, version % 1000 / 10));
}

bool concerns_cuda(std::string_view variable) {
  constexpr std::string_view kNames[] = {
      "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
  return variable.starts_with("CUDA_") || variable.starts_with("NVIDIA_") ||
         std::ranges::find(kNames, variable) != std::end(kNames);
}

std::map<std::string, std::string> cuda_environment() {
  std::map<std::string, std::string> variables = own_environment();
  std::erase_if(variables, [](const auto& variable) { return !concerns_cuda(variable.first); });
  return variables;
}

int open_error_of(const SystemFiles& files, const std::string& path) {
  const int file = open(files.at(path).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return errno;
  close(file);
  return 0;
}

Machine read_machine(const SystemFiles& files, std::map<std::string, std::string> environment) {
  Machine machine;
  machine.simulated = files.simulated();
  machine.environment = std::move(environment);
  machine.gpus = pci_gpus(files);
  read_modules(files, machine);
  for (PciController& gpu : machine.gpus) {
    if (const auto minor = minor_of(files, gpu.address)) gpu.minor = static_cast<int>(*minor);
  }
  machine.nodes = device_nodes(files, machine);
  machine.wsl = files.exists("/dev/dxg");
  machine.container = container_of(files);
  machine.toolkits = toolkits_of(files, machine);
  machine.xids = read_xids(files);
  return machine;
}

ComputingProcesses::ComputingProcesses() {
  try {
    worker_ = std::make_unique<WorkerProcess>(Json{{"task", "doctor-computing"}},
                                              std::map<std::string, std::string>());
  } catch (const Error&) {
    // Then nothing is known, as without NVML.
  }
}

std::set<pid_t> ComputingProcesses::now() {
  if (!worker_) return {};
  for (const Json& message : worker_->receive()) {
    if (const auto pids = maybe<std::vector<pid_t>>(message, "computing"))
      last_ = std::set(pids->begin(), pids->end());
  }
  return last_;
}

void report_computing_processes() {
  constexpr useconds_t kEvery = 250'000;
  for (;;) {
    Json pids = Json::array();
    for (const cuda::NvmlGpu& gpu : cuda::nvml_inventory().gpus) {
      for (const cuda::GpuProcess& process : gpu.processes) pids.push_back(process.pid);
    }
    send_message({{"computing", pids}});
    usleep(kEvery);
  }
}

}  // namespace launchgap::doctor
