// Why no program gets a GPU: from the hardware up to the driver's first call.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/rules/diagnose.h"
#include "harness/doctor/rules/rules.h"

namespace launchgap::doctor {
namespace {

constexpr const char* kMachine = "machine";

std::string variable(const MachineFacts& facts, const std::string& name) {
  return variable_in(facts.machine.environment, name);
}

bool is_gpu_node(const DeviceNode& node) {
  return node.path != "/dev/nvidia-uvm" && node.path != "/dev/nvidiactl";
}

bool has_variable(const MachineFacts& facts, const std::string& name) {
  return facts.machine.environment.contains(name);
}

Finding prevents(const char* code,
                 std::string sentence,
                 const std::vector<std::string>& evidence,
                 std::string remedy) {
  return about(
      kMachine, code, Severity::prevents, std::move(sentence), evidence, std::move(remedy));
}

template <class... Lists>
std::vector<std::string> lines(std::vector<std::string> first, const Lists&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

bool all_bound_to(const MachineFacts& facts, const std::string& driver) {
  return !facts.machine.gpus.empty() &&
         std::ranges::all_of(facts.machine.gpus,
                             [&](const PciController& gpu) { return gpu.bound_to == driver; });
}

// --- the container
// --------------------------------------------------------------------------------

/// What NVIDIA's container toolkit was asked for, where that explains a missing driver or node.
std::optional<Finding> why_not_in_container(const MachineFacts& facts) {
  if (facts.machine.container.empty()) return std::nullopt;
  const std::string devices = variable(facts, "NVIDIA_VISIBLE_DEVICES");
  const std::string abilities = variable(facts, "NVIDIA_DRIVER_CAPABILITIES");
  const bool has_nodes = std::ranges::any_of(facts.machine.nodes, [](const DeviceNode& node) {
    return is_gpu_node(node) && node.exists && node.open_error == 0;
  });
  const std::vector<std::string> evidence = {
      fmt::format("this is {}", facts.machine.container),
      has_variable(facts, "NVIDIA_VISIBLE_DEVICES")
          ? fmt::format("NVIDIA_VISIBLE_DEVICES is '{}'", devices)
          : "NVIDIA_VISIBLE_DEVICES is not set",
      kernel_driver(facts)};
  // With CDI it is void and the nodes are there all the same.
  if (!has_nodes && (devices.empty() || devices == "void")) {
    if (facts.machine.container == "Apptainer") {
      return prevents("container-without-gpu",
                      "The container was started without GPUs, so programs in it will use the CPU.",
                      evidence,
                      "start it with `apptainer exec --nv …`");
    }
    return prevents("container-without-gpu",
                    "The container was started without GPUs, so programs in it will use the CPU.",
                    evidence,
                    "start it with GPUs: `docker run --gpus all …`, or NVIDIA_VISIBLE_DEVICES=all "
                    "with NVIDIA's container runtime; in Kubernetes ask for nvidia.com/gpu");
  }
  if (!has_nodes && devices == "none") {
    return prevents("container-without-gpu",
                    "The container was given the driver's libraries and no GPU.",
                    evidence,
                    "start it with NVIDIA_VISIBLE_DEVICES=all, or with the GPUs that it may use");
  }
  const bool computes =
      abilities.find("compute") != std::string::npos || abilities.find("all") != std::string::npos;
  if (!facts.driver.loaded() && !computes) {
    return prevents(
        "container-without-compute",
        "The container was given no libcuda: its driver capabilities do not include compute.",
        lines(
            evidence,
            std::vector<std::string>{
                abilities.empty() ? "NVIDIA_DRIVER_CAPABILITIES is not set, which means utility: "
                                    "nvidia-smi works and CUDA does not"
                                  : fmt::format("NVIDIA_DRIVER_CAPABILITIES is '{}'", abilities)}),
        "start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility");
  }
  return std::nullopt;
}

// --- no libcuda
// -----------------------------------------------------------------------------------

Finding without_any_gpu(const MachineFacts& facts, const std::vector<std::string>& evidence) {
  const bool software = !facts.machine.toolkits.empty() || !facts.libraries.empty();
  Finding finding;
  finding.severity = Severity::note;
  finding.subject = kMachine;
  finding.evidence = in_words(evidence);
  if (software && !facts.driver.loaded()) {
    finding.code = "no-driver";
    finding.sentence = fmt::format(
        "There is no NVIDIA driver, so programs will use the CPU. PCI shows no NVIDIA GPU either; "
        "if there is one, install {}.",
        driver_wanted(facts));
    finding.remedy = install_driver(facts);
  } else {
    finding.code = "no-gpu";
    finding.sentence = "There is no NVIDIA GPU in this machine, so programs will use the CPU.";
    finding.remedy =
        "nothing, unless there should be one: then see whether `lspci -d 10de:` shows it, and "
        "check its seat, its power and the firmware's settings";
  }
  return finding;
}

/// In WSL the driver is that of Windows, and its libcuda is mounted from there.
Finding without_windows_driver(const MachineFacts& facts) {
  Finding finding;
  finding.code = "no-driver";
  finding.severity = Severity::note;
  finding.subject = kMachine;
  finding.sentence = "Windows gives this WSL no NVIDIA driver, so programs will use the CPU.";
  finding.evidence = {facts.driver.error, "/dev/dxg is there"};
  finding.remedy =
      "if the machine has an NVIDIA GPU, install NVIDIA's driver in Windows and none in WSL; the "
      "loader must search /usr/lib/wsl/lib";
  return finding;
}

Finding bound_elsewhere(const MachineFacts& facts, const std::string& driver) {
  const bool nouveau = driver == "nouveau";
  return prevents("gpu-bound-elsewhere",
                  fmt::format("The kernel driver {} has the GPU{}, so NVIDIA's cannot use it.",
                              driver,
                              nouveau ? "" : ", to hand it to a virtual machine or to nobody"),
                  lines(gpus_on_pci(facts)),
                  nouveau ? "keep nouveau away (`echo blacklist nouveau > "
                            "/etc/modprobe.d/nouveau.conf`, then `update-initramfs -u`) and restart"
                          : fmt::format("take the GPU away from {} (driverctl unset-override, or "
                                        "its line in /etc/modprobe.d) and restart",
                                        driver));
}

/// What the loader said is not that there is no such file.
bool is_broken(const std::string& error) {
  return !error.empty() && error.find("No such file") == std::string::npos;
}

Finding why_no_library(const MachineFacts& facts) {
  const Machine& machine = facts.machine;
  if (!facts.driver.died.empty() || is_broken(facts.driver.error)) {
    return prevents(
        "driver-library-broken",
        "The driver's library libcuda.so.1 cannot be loaded.",
        {facts.driver.died.empty() ? facts.driver.error : facts.driver.died, kernel_driver(facts)},
        "remove what is not NVIDIA's from the loader's way (LD_LIBRARY_PATH, /etc/ld.so.conf.d), "
        "or install the driver's libraries again");
  }
  if (machine.nvidia_module) {
    if (auto finding = why_not_in_container(facts)) return *std::move(finding);
    return prevents(
        "driver-library-missing",
        "The kernel has NVIDIA's driver, but the loader does not find its library libcuda.so.1.",
        {kernel_driver(facts), facts.driver.error},
        machine.container.empty()
            ? fmt::format("install the driver's libraries of the same version{}: on Debian "
                          "libcuda1, on Ubuntu libnvidia-compute-<branch>",
                          machine.module_version ? ", " + machine.module_version->text() : "")
            : "start the container with NVIDIA's container runtime, which brings them in: `docker "
              "run --gpus all …`, `apptainer exec --nv …`; where nodes mount the driver themselves "
              "(GKE), put its folder into LD_LIBRARY_PATH: /usr/local/nvidia/lib64");
  }
  if (machine.wsl) return without_windows_driver(facts);
  if (!has_gpu(facts)) return without_any_gpu(facts, {kernel_driver(facts), facts.driver.error});
  if (all_bound_to(facts, "vfio-pci")) return bound_elsewhere(facts, "vfio-pci");
  return prevents(
      "no-driver",
      fmt::format("There is no NVIDIA driver, so programs will use the CPU: install {}.",
                  driver_wanted(facts)),
      lines(gpus_on_pci(facts), std::vector{kernel_driver(facts), facts.driver.error}),
      install_driver(facts));
}

// --- libcuda is there
// -----------------------------------------------------------------------------

bool driver_is_stub(const MachineFacts& facts) {
  return facts.driver.path.find("/stubs/") != std::string::npos ||
         (facts.driver.init && facts.driver.init->code == 34);
}

bool is_compat(const MachineFacts& facts) {
  return facts.driver.path.find("/compat/") != std::string::npos;
}

std::vector<std::string> about_library(const MachineFacts& facts) {
  std::vector<std::string> evidence = {driver_file(facts), kernel_driver(facts)};
  if (facts.driver.init)
    evidence.push_back(call_text("cuInit", facts.driver.init->code, facts.driver.init->text));
  return evidence;
}

Finding stub(const MachineFacts& facts) {
  return prevents(
      "driver-stub",
      "The loader takes the toolkit's stub of libcuda, which is for linking only.",
      about_library(facts),
      fmt::format("take the folder of the stub out of LD_LIBRARY_PATH or /etc/ld.so.conf.d{}",
                  facts.driver.others.empty()
                      ? "; there is no other libcuda.so.1, so a driver is needed as well"
                      : fmt::format("; then the loader takes {}", facts.driver.others.front())));
}

/// Another copy of libcuda, of the kernel's own version, that the loader would have had.
std::optional<std::string> fitting_copy(const MachineFacts& facts) {
  if (!facts.machine.module_version) return std::nullopt;
  for (const std::string& copy : facts.driver.others) {
    if (copy.find("libcuda.so." + facts.machine.module_version->text()) != std::string::npos)
      return copy;
  }
  return std::nullopt;
}

/// The user-mode library and the kernel's driver are of different versions.
std::optional<Finding> why_mismatch(const MachineFacts& facts) {
  const DriverFacts& driver = facts.driver;
  const bool says_so = (driver.init && driver.init->code == 803) ||
                       (facts.nvml.failed && facts.nvml.failed->code == 18);
  const bool differs = driver.version && facts.machine.module_version &&
                       *driver.version != *facts.machine.module_version;
  if (!says_so && !(differs && !is_compat(facts))) return std::nullopt;
  if (const auto copy = fitting_copy(facts)) {
    return prevents("driver-library-shadowed",
                    "The loader takes a libcuda that does not fit the kernel's driver, although "
                    "another one does.",
                    lines(about_library(facts), std::vector{"the one that fits is " + *copy}),
                    fmt::format("take {} out of the loader's way: it comes by {}",
                                driver.path,
                                driver.origin.empty() ? "LD_LIBRARY_PATH or /etc/ld.so.conf.d"
                                                      : driver.origin));
  }
  if (is_compat(facts)) {
    return prevents("driver-mismatch",
                    "The libcuda for forward compatibility does not fit the kernel's driver.",
                    about_library(facts),
                    "take its folder out of LD_LIBRARY_PATH and use a CUDA that the driver serves, "
                    "or install the cuda-compat package for this driver branch");
  }
  return prevents(
      "driver-mismatch",
      "The driver's libraries and its kernel module have different versions, as after an upgrade "
      "without a restart.",
      about_library(facts),
      "restart the machine, or stop everything that uses the GPU and reload the modules: `rmmod "
      "nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia`");
}

bool node_is(const MachineFacts& facts, const std::string& path, bool missing) {
  return std::ranges::any_of(facts.machine.nodes, [&](const DeviceNode& node) {
    return node.path == path && (missing ? !node.exists : node.exists && node.open_error != 0);
  });
}

std::optional<Finding> why_no_unified_memory(const MachineFacts& facts) {
  if (facts.machine.wsl) return std::nullopt;
  const bool missing = node_is(facts, "/dev/nvidia-uvm", true);
  const bool denied = node_is(facts, "/dev/nvidia-uvm", false);
  if (!missing && !denied) return std::nullopt;
  return prevents("uvm-unavailable",
                  missing && !facts.machine.uvm_module
                      ? "CUDA cannot start: the kernel module nvidia_uvm is not loaded."
                      : "CUDA cannot start: /dev/nvidia-uvm cannot be used.",
                  lines(about_library(facts), nodes_in_trouble(facts)),
                  facts.machine.container.empty()
                      ? "as root: `nvidia-modprobe -u -c 0`, after each start of the machine; any "
                        "CUDA program that root runs does the same"
                      : "on the host: `nvidia-modprobe -u -c 0`, then start the container again");
}

std::optional<Finding> why_no_nodes(const MachineFacts& facts) {
  if (facts.machine.wsl) return std::nullopt;

  const bool control_missing = node_is(facts, "/dev/nvidiactl", true);
  const bool no_gpu_node = std::ranges::none_of(facts.machine.nodes, [&](const DeviceNode& node) {
    return is_gpu_node(node) && node.exists;
  });
  if (control_missing || no_gpu_node) {
    if (auto finding = why_not_in_container(facts)) return finding;
    return prevents(
        "device-nodes-missing",
        "The driver's device nodes below /dev are missing.",
        lines(about_library(facts), nodes_in_trouble(facts)),
        facts.machine.container.empty()
            ? "as root: `nvidia-modprobe -c 0 -u`, or start nvidia-persistenced, which makes them"
            : "start the container with `--gpus all`, or give it the nodes by --device");
  }
  bool denied = node_is(facts, "/dev/nvidiactl", false);
  bool lost = false;
  for (const DeviceNode& node : facts.machine.nodes) {
    denied = denied || (node.exists && node.open_error != 0 && is_gpu_node(node));
    lost = lost || (node.exists && node.open_error == EPERM);
  }
  if (!denied) return std::nullopt;
  if (lost && !facts.machine.container.empty()) {
    return prevents(
        "container-lost-devices",
        "The container lost access to its device nodes: its device rules were reset.",
        lines(about_library(facts), nodes_in_trouble(facts)),
        "start the container again. It happens when systemd reloads while the container's runtime "
        "set device rules behind its back: use CDI or the runtime's own cgroup driver");
  }
  return prevents("device-node-denied",
                  "This user may not open the driver's device nodes.",
                  lines(nodes_in_trouble(facts), about_library(facts)),
                  "give the user access: add it to the group that owns them (often video or "
                  "render), or let the driver make them for all with NVreg_DeviceFileMode=0666");
}

std::string without_it(const DriverFacts& unrestricted) {
  const std::size_t count = unrestricted.devices.size();
  return count == 1 ? "without it there is 1 GPU"
                    : fmt::format("without it there are {} GPUs", count);
}

std::optional<Finding> why_hidden(const MachineFacts& facts) {
  const std::string value = variable(facts, "CUDA_VISIBLE_DEVICES");
  if (!has_variable(facts, "CUDA_VISIBLE_DEVICES") || !facts.unrestricted ||
      !facts.unrestricted->works())
    return std::nullopt;
  const VisibleDevices visible = read_visible_devices(value, facts.unrestricted->devices);
  if (visible.invalid) {
    return prevents(
        "cuda-visible-devices-invalid",
        fmt::format("CUDA_VISIBLE_DEVICES begins with '{}', but there is no such GPU, so programs "
                    "see none.",
                    *visible.invalid),
        {fmt::format("CUDA_VISIBLE_DEVICES is '{}'", value), without_it(*facts.unrestricted)},
        "`unset CUDA_VISIBLE_DEVICES`, or name GPUs by the numbers or UUIDs that `launchgap list "
        "devices` shows");
  }
  return prevents(
      "hidden-by-cuda-visible-devices",
      fmt::format("CUDA_VISIBLE_DEVICES is '{}' and hides every GPU, so programs will use the CPU.",
                  value),
      {without_it(*facts.unrestricted)},
      "`unset CUDA_VISIBLE_DEVICES`, or set it to the GPUs that are to be used");
}

Finding driver_died(const MachineFacts& facts) {
  const bool hung = facts.driver.hung;
  return prevents(hung ? "driver-hangs" : "driver-crashes",
                  fmt::format("The CUDA driver {}.", hung ? "does not answer" : "crashes"),
                  {facts.driver.died, driver_file(facts), kernel_driver(facts)},
                  hung ? "look for processes in state D (`ps -eo pid,stat,comm | grep ' D'`) and "
                         "for Xid lines in `dmesg`; a GPU that hangs needs a reset or a restart"
                       : "look at `dmesg` for what was the matter, and install the driver again");
}

/// The driver starts and lists nothing, or says that there is nothing.
Finding why_lists_nothing(const MachineFacts& facts) {
  if (auto finding = why_no_nodes(facts)) return *std::move(finding);
  std::vector<Finding> each;
  for (const JoinedGpu& gpu : facts.gpus) each.push_back(why_not_listed(facts, gpu));
  if (each.empty()) {
    return prevents("driver-lists-no-gpu",
                    "The driver works but lists no GPU.",
                    about_library(facts),
                    "look at `dmesg | grep NVRM` for what kept the driver from the GPU");
  }
  // All for the same reason: that is the machine's. Otherwise the gravest stands for the machine.
  sort_findings(each);
  Finding first = each.front();
  for (std::size_t i = 1; i < each.size(); ++i) {
    if (each[i].code == first.code) {
      first.evidence.insert(first.evidence.end(), each[i].evidence.begin(), each[i].evidence.end());
    } else {
      first.evidence.push_back(fmt::format("{}: {}", each[i].subject, each[i].sentence));
    }
  }
  return first;
}

}  // namespace

std::optional<Finding> why_no_driver(const MachineFacts& facts) {
  const DriverFacts& driver = facts.driver;
  if (driver.works()) return std::nullopt;
  if (!driver.loaded()) return why_no_library(facts);
  if (!driver.died.empty()) return driver_died(facts);
  if (driver_is_stub(facts)) return stub(facts);
  if (!driver.init) {
    return prevents("driver-library-broken",
                    "libcuda.so.1 is no CUDA driver.",
                    {driver_file(facts), driver.error},
                    "remove it from the loader's way, and install NVIDIA's driver");
  }
  if (!facts.machine.nvidia_module && !facts.machine.wsl &&
      (facts.machine.simulated || !driver.simulated)) {
    if (!has_gpu(facts)) return without_any_gpu(facts, about_library(facts));
    for (const char* other : {"nouveau", "vfio-pci"}) {
      if (all_bound_to(facts, other)) return bound_elsewhere(facts, other);
    }
    for (const JoinedGpu& gpu : facts.gpus) {
      if (auto finding = why_dropped(facts, gpu)) return finding;
    }
    return prevents("driver-not-loaded",
                    "NVIDIA's driver is installed, but its kernel module is not loaded.",
                    lines(about_library(facts), gpus_on_pci(facts)),
                    "`modprobe nvidia` as root, and `dmesg | grep -i nvidia` for why it was not: "
                    "after a new kernel its modules are built again (`dkms autoinstall`), and "
                    "Secure Boot wants them signed");
  }
  if (auto finding = why_hidden(facts)) return finding;
  if (auto finding = why_mismatch(facts)) return finding;
  if (driver.init->code == 0 && !driver.devices_error.empty()) {
    return prevents("driver-error",
                    "The driver starts but cannot list its GPUs.",
                    {driver.devices_error, driver_file(facts), kernel_driver(facts)},
                    "install a driver that fits; look at `dmesg | grep -E 'NVRM|Xid'`");
  }
  if (driver.init->code == 0 || driver.init->code == 100) return why_lists_nothing(facts);
  // 304: a call of the operating system failed, as where a node is forbidden.
  if (driver.init->code == 999 || driver.init->code == 3 || driver.init->code == 304) {
    for (const JoinedGpu& gpu : facts.gpus) {
      if (auto finding = why_lost(facts, gpu)) return finding;
    }
    if (auto finding = why_no_unified_memory(facts)) return finding;
    if (auto finding = why_no_nodes(facts)) return finding;
  }
  return finding_of_code(facts, nullptr, "cuInit", driver.init->code, driver.init->text);
}

}  // namespace launchgap::doctor
