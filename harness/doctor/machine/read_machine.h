// What the kernel, the file system and the environment say of NVIDIA's hardware and software,
// without loading any of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/core/system_files.h"
#include "harness/doctor/version.h"
#include "harness/run/process.h"

namespace launchgap::doctor {

/// An NVIDIA display or 3D controller on the PCI bus.
struct PciController {
  std::string address;       // "0000:07:00.0"
  int device_id = 0;         // of vendor 10de
  std::string bound_to;      // kernel driver: "nvidia", "nouveau", "vfio-pci"; empty: none
  std::optional<int> minor;  // of /dev/nvidia<minor>, as the kernel's driver tells it
  std::optional<int> width, max_width;             // lanes
  std::optional<double> speed_gts, max_speed_gts;  // GT/s per lane
};

/// One of NVIDIA's device nodes.
struct DeviceNode {
  std::string path;  // "/dev/nvidia0"
  bool exists = false;
  std::string mode;    // "crw-rw-rw- 0:0"
  int open_error = 0;  // errno of opening it for reading and writing; 0 if that works
};

/// A CUDA toolkit that something points at.
struct Toolkit {
  std::string pointed_by;  // "CUDA_HOME", "nvcc of PATH", "/usr/local/cuda"
  std::string path;        // with links resolved
  std::optional<Version> version;
};

/// An error that the kernel's driver reported of a GPU.
struct Xid {
  std::string address;  // "0000:07:00"
  int code = 0;
  std::string text;
};

struct Machine {
  std::vector<PciController> gpus;  // by address
  bool nvidia_module = false, uvm_module = false, nouveau_module = false;
  std::optional<Version> module_version;  // of the kernel's driver, "580.65.06"
  bool open_module = false;               // NVIDIA's open kernel modules
  std::optional<bool> profiling_needs_root;
  std::vector<DeviceNode> nodes;  // nvidiactl, nvidia-uvm and one for each GPU, there or not
  bool wsl = false;               // GPUs come through /dev/dxg
  std::string container;          // "docker", "podman", "kubernetes", "a container"; empty: none
  std::vector<Toolkit> toolkits;
  std::vector<Xid> xids;  // the last of them, oldest first; none where that may not be read
  std::map<std::string, std::string> environment;  // what concerns CUDA and the loader
  bool simulated = false;
};

/// Reads it all, without the device nodes' `open_error`: opening one may take seconds.
Machine read_machine(const SystemFiles& files, std::map<std::string, std::string> environment);

/// errno of opening a device node for reading and writing, 0 if that works. Opening a GPU that no
/// process has open makes the driver initialise it.
int open_error_of(const SystemFiles& files, const std::string& path);

/// Whether a variable changes what CUDA and the loader do, or says where they are.
bool concerns_cuda(std::string_view variable);
/// Those of this process.
std::map<std::string, std::string> cuda_environment();

/// The toolkit's version, from its version.json, version.txt or cuda.h.
std::optional<Version> toolkit_version(const SystemFiles& files, const std::string& path);

// --- Which processes compute on any GPU, by NVML, asked from outside of this process ---

/// A process that asks NVML four times a second until this ends. Where NVML does not work it tells
/// nothing. In a container the numbers can be those of another name space.
class ComputingProcesses {
 public:
  ComputingProcesses();
  /// The ids of the last answer; does not wait.
  std::set<pid_t> now();

 private:
  std::unique_ptr<WorkerProcess> worker_;
  std::set<pid_t> last_;
};

/// The worker's side: ends when its parent does.
void report_computing_processes();

}  // namespace launchgap::doctor
