// Words that several rules share: evidence and remedies.
#pragma once

#include <string>
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

}  // namespace launchgap::doctor
