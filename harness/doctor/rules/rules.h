// What the rules share: the words of evidence and remedies, the rules of each layer, and
// CUDA_VISIBLE_DEVICES as the driver reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/machine/machine_facts.h"

namespace launchgap::doctor {

Finding about(const std::string& subject,
              const char* code,
              Severity severity,
              std::string sentence,
              const std::vector<std::string>& evidence,
              std::string remedy);

/// "libcuda.so.1 is /usr/lib/libcuda.so.535.54.03 (the loader's cache)".
std::string driver_file(const MachineFacts& facts);
/// "the kernel's driver is 580.65.06 (open modules)"; says so where there is none.
std::string kernel_driver(const MachineFacts& facts);
/// "cuInit answers 100 (CUDA_ERROR_NO_DEVICE: …)".
std::string call_text(const std::string& call, int code, const std::string& text);
/// Every GPU that PCI shows, and which kernel driver has it.
std::vector<std::string> gpus_on_pci(const MachineFacts& facts);
/// Device nodes that are missing or cannot be opened: "/dev/nvidia0 (c--------- 0:0): Permission
/// denied".
std::vector<std::string> nodes_in_trouble(const MachineFacts& facts);
/// The newest of the toolkits and runtimes that are there, "13.0"; empty if there is none.
std::string newest_cuda(const MachineFacts& facts);
/// "NVIDIA's driver, 580 or newer for CUDA 13.0": which one the software and the GPUs here want.
std::string driver_wanted(const MachineFacts& facts);
/// How to install a driver that serves what is on this machine.
std::string install_driver(const MachineFacts& facts);
/// What else does not work and is explained by the driver's not working.
std::vector<std::string> symptoms_without_driver(const MachineFacts& facts, const Finding& cause);

// --- The rules in their layers, each on the one before; diagnose() puts them together ---

/// Whether there is any sign of an NVIDIA GPU: on the PCI bus, in NVML, or in the driver's list.
bool has_gpu(const MachineFacts& facts);

/// What is wrong with single GPUs while others, or the driver, work.
std::vector<Finding> diagnose_gpus(const MachineFacts& facts);
/// What is wrong with the libraries that programs would load.
std::vector<Finding> diagnose_libraries(const MachineFacts& facts, bool driver_works);
/// What lets GPUs that work be slow, uneven or full.
std::vector<Finding> diagnose_state(const MachineFacts& facts);

/// What a code of the CUDA driver or runtime means here. `gpu` is null where it concerns none.
Finding finding_of_code(const MachineFacts& facts,
                        const JoinedGpu* gpu,
                        const std::string& call,
                        int code,
                        const std::string& text);

/// Whether a GPU has fallen off the bus, by NVML or by the kernel's Xid 79.
std::optional<Finding> why_lost(const MachineFacts& facts, const JoinedGpu& gpu);

/// Whether the driver that is installed has dropped, or does not know, a GPU on the bus.
std::optional<Finding> why_dropped(const MachineFacts& facts, const JoinedGpu& gpu);

/// Why a GPU is not among those that the driver lists, while it lists others or none.
Finding why_not_listed(const MachineFacts& facts, const JoinedGpu& gpu);

// --- CUDA_VISIBLE_DEVICES, as the driver reads it ---

struct VisibleDevices {
  std::vector<std::size_t> shown;      // indices into the devices, in the order of the ordinals
  std::optional<std::string> invalid;  // the entry at which the list ends, since it names no device
  bool unknown = false;   // instances are named that CUDA does not list without this variable
  bool repeated = false;  // an entry came twice, which empties the list
};

/// Numbers, or UUIDs and their beginnings ("GPU-8932f937", "MIG-…"); the first entry decides which.
/// The first entry that names no device ends the list: "0,2,-1,1" shows 0 and 2. An empty text or
/// "-1" shows none and is meant so. Source: CUDA C Programming Guide, "CUDA Environment Variables".
VisibleDevices read_visible_devices(std::string_view value,
                                    const std::vector<DeviceFacts>& devices);

}  // namespace launchgap::doctor
