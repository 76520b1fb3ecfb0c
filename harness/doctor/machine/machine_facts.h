// Everything that the doctor knows of a machine before it judges.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/cuda/nvml_inventory.h"
#include "harness/device/facts.h"
#include "harness/doctor/machine/read_machine.h"
#include "harness/doctor/version.h"

namespace launchgap::doctor {

/// What a call into a library answered.
struct CallResult {
  int code = 0;
  std::string text;
};

/// What a probe tells of a library, as the loader finds it.
struct ProbedLibrary {
  std::string error;                // why it could not be loaded
  std::string path;                 // links resolved; empty if it could not be loaded
  std::string origin;               // why the loader took this one
  std::vector<std::string> others;  // different files of the same name that it would have come to
  std::string died;                 // how its process ended, if it did not end well
  bool hung = false;                // it did not answer in time
  bool simulated = false;
};

/// The user-mode driver, libcuda.so.1.
struct DriverFacts : ProbedLibrary {
  bool asked = false;
  std::optional<Version> version;   // from the file's name, libcuda.so.580.65.06
  std::optional<int> cuda_version;  // 13000
  std::optional<CallResult> init;   // cuInit
  std::vector<DeviceFacts> devices;
  std::string devices_error;  // why they could not be listed

  bool loaded() const { return !path.empty(); }
  /// It started, and listed at least one GPU.
  bool works() const { return init && init->code == 0 && !devices.empty(); }
};

struct NvmlFacts : ProbedLibrary {
  bool asked = false;
  std::string version;
  std::optional<CallResult> failed;  // what it answered if it does not work
  std::optional<Version> driver_version;
  std::vector<cuda::NvmlGpu> gpus;
};

/// One of NVIDIA's libraries, by a name that programs ask for.
struct LibraryFacts : ProbedLibrary {
  std::string kind;    // cudart, cublas, cudnn, cupti, nccl
  std::string soname;  // "libcudnn.so.9"
  std::string version;
  std::optional<CallResult> call;  // cudart: cudaGetDeviceCount
  std::vector<CallResult> checks;  // cudnn: whether its parts belong together, where they do not
  std::vector<std::string> files;  // cudnn: all parts that it loaded
  // What the files hold code for: "9.0", and "9.0a" for that capability alone.
  std::vector<std::string> machine_code, ptx;
  std::string code_incomplete;  // why there may be more; empty if all of it was read
};

/// A step of the proof.
struct ProofStep {
  std::string name;                        // context, kernel, matmul, convolution, load
  std::string status;                      // ok, failed, wrong, unsupported
  std::string detail, callee, call, text;  // callee: the library
  std::optional<int> code;
  double ms = 0;
};

struct Proof {
  std::vector<ProofStep> steps;
  std::string died;
  bool hung = false;
  std::optional<int> pcie_generation, pcie_width;  // under load
  std::optional<double> sm_clock_mhz, clock_reasons;
};

/// One GPU, by all who see it.
struct JoinedGpu {
  std::string pci;                // "0000:07:00.0"; empty if unknown
  std::string uuid;               // empty if nobody tells
  std::string name;               // as the driver or NVML call it, else from the PCI tables
  std::optional<int> capability;  // 90 for 9.0
  std::optional<int> minor;       // of /dev/nvidia<minor>
  const PciController* on_pci = nullptr;
  const DeviceNode* node = nullptr;
  const cuda::NvmlGpu* in_nvml = nullptr;
  const DeviceFacts* in_driver = nullptr;  // among those that this process may use
  bool hidden = false;                     // only CUDA_VISIBLE_DEVICES keeps it away
  std::optional<Proof> proof;
  std::string locked;  // who measures on it just now, so that it was left alone

  /// As the user knows it: name and PCI address or UUID.
  std::string subject() const;
  /// A step of its proof; null if there is none.
  const ProofStep* step(std::string_view proof_step) const;
};

/// Whether it is an instance of a partitioned GPU (MIG).
bool is_instance(const JoinedGpu& gpu);

struct MachineFacts {
  Machine machine;
  DriverFacts driver;
  std::optional<DriverFacts> unrestricted;  // without CUDA_VISIBLE_DEVICES, where that is set
  NvmlFacts nvml;
  std::vector<LibraryFacts> libraries;
  std::vector<JoinedGpu> gpus;  // of the PCI bus, of NVML and of the driver, joined; by PCI address
  std::size_t not_given = 0;    // GPUs on the bus of which a container has nothing
  double seconds = 0;           // that it took
  bool proven = false;          // whether there was a proof at all
  bool simulated = false;       // something of it is of the tests
};

/// Joins what PCI, NVML and the driver know of the same GPU, into `facts.gpus`. The pointers in
/// there are into `facts`, which must stay where it is.
void join_gpus(MachineFacts& facts);

}  // namespace launchgap::doctor
