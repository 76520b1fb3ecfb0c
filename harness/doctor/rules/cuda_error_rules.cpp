// What the codes of CUDA's driver and runtime mean: what to look at is not what their texts say.
// Source: CUDA Driver API reference, CUresult; CUDA Compatibility guide.
#include <algorithm>

#include <fmt/format.h>

#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/rules/rules.h"

namespace launchgap::doctor {
namespace {

struct Meaning {
  int code;
  const char* finding;
  const char* sentence;
  const char* remedy;
};

constexpr Meaning kMeanings[] = {
    {2,
     "gpu-memory-full",
     "The GPU's memory is full: not even a context fits.",
     "end the processes that hold its memory (the doctor lists them), or wait for them"},
    {34,
     "driver-stub",
     "The loader takes the toolkit's stub of libcuda, which is for linking only.",
     "take the folder of the stub out of LD_LIBRARY_PATH or /etc/ld.so.conf.d"},
    {35,
     "driver-too-old",
     "The driver is older than the CUDA runtime needs.",
     "install a newer driver, or a CUDA of the driver's own major version"},
    {36,
     "driver-lacks-call",
     "The driver is older than the library and lacks a call that the library makes.",
     "install the driver of the library's CUDA, or the library in the driver's version: "
     "minor-version compatibility does not cover features of the driver"},
    {46,
     "gpu-taken",
     "The GPU is not available to this process: another one has it for itself, or its MIG "
     "instance.",
     "end the other process; in exclusive mode as root `nvidia-smi -c DEFAULT`"},
    {101,
     "cuda-visible-devices-invalid",
     "A program asks for a GPU by a number, and no visible GPU has it.",
     "number GPUs from 0 among those that CUDA_VISIBLE_DEVICES leaves"},
    {209,
     "no-code-for-gpu",
     "The program has no code for this GPU: no machine code of its major version, and no PTX for "
     "it or an older one.",
     "build it for this compute capability, or with PTX of an older one (`-gencode "
     "arch=compute_XX,code=compute_XX`)"},
    {214,
     "ecc-uncorrectable",
     "The GPU's memory has an error that ECC cannot correct; results on it cannot be trusted.",
     "take the node out of work and reset the GPU; if `nvidia-smi -q -d ROW_REMAPPER,ECC` still "
     "counts errors, have it replaced"},
    {218,
     "ptx-invalid",
     "The driver's compiler does not accept the PTX: it is damaged, or not for this compiler.",
     "build the program again; if that does not help, with machine code for this GPU in place of "
     "PTX"},
    {221,
     "jit-compiler-missing",
     "The driver's compiler for PTX, libnvidia-ptxjitcompiler, is missing.",
     "install it in the driver's own version: on Debian libnvidia-ptxjitcompiler1, on Ubuntu "
     "libnvidia-compute-<branch>; in a container, capability compute brings it"},
    {222,
     "ptx-too-new",
     "The driver cannot compile the PTX: a newer CUDA made it. Machine code of that CUDA can still "
     "run.",
     "ship machine code for this GPU, or install the driver that belongs to the program's CUDA"},
    {223,
     "jit-disabled",
     "The GPU needs compiled PTX, but CUDA_DISABLE_PTX_JIT forbids compiling.",
     "`unset CUDA_DISABLE_PTX_JIT`, or ship machine code for this GPU"},
    {802,
     "fabric-manager",
     "The GPUs wait for their NVSwitches: the fabric manager is not running, or not yet done.",
     "`systemctl start nvidia-fabricmanager`, in the driver's own version (package "
     "nvidia-fabricmanager-<branch>), and look at its log if it does not stay; with confidential "
     "computing the GPU must first be made ready (`nvidia-smi conf-compute -srs 1`)"},
    {805,
     "mps-unavailable",
     "The process must use MPS, but the MPS server does not accept it.",
     "start `nvidia-cuda-mps-control -d` as the same user, or unset CUDA_MPS_PIPE_DIRECTORY"},
    {803,
     "driver-mismatch",
     "The driver's libraries and its kernel module are of different versions.",
     "restart the machine, or reload the driver's modules"},
    {804,
     "compat-not-supported",
     "The loader took the libcuda of cuda-compat, which does not support this GPU.",
     "take the folder of cuda-compat out of LD_LIBRARY_PATH (images set it): forward compatibility "
     "is for data-centre GPUs; others need a driver that serves this CUDA itself"},
};

}  // namespace

Finding finding_of_code(const MachineFacts& facts,
                        const JoinedGpu* gpu,
                        const std::string& call,
                        int code,
                        const std::string& text) {
  Finding finding;
  finding.severity = Severity::prevents;
  finding.subject = gpu ? gpu->subject() : "machine";
  finding.evidence = {call_text(call, code, text), driver_file(facts), kernel_driver(facts)};
  // 806 to 809 say more exactly what is the matter with MPS.
  const bool mps = code >= 805 && code <= 809;
  const bool no_list = code == 101 && !facts.machine.environment.contains("CUDA_VISIBLE_DEVICES");
  const auto meaning = no_list ? std::end(kMeanings)
                               : std::ranges::find(kMeanings, mps ? 805 : code, &Meaning::code);
  if (meaning != std::end(kMeanings)) {
    finding.code = meaning->finding;
    finding.sentence = meaning->sentence;
    finding.remedy = meaning->remedy;
  } else if (code == 999) {
    finding.code = "driver-unknown-error";
    finding.sentence = "The driver fails without knowing why.";
    finding.remedy =
        "look at `dmesg | grep -E 'NVRM|Xid'` and restart nvidia-persistenced; if that does not "
        "help, restart the machine";
  } else {
    finding.code = "driver-error";
    finding.sentence = fmt::format("The driver refuses: {}.", call_text(call, code, text));
    finding.remedy =
        "look at `dmesg | grep -E 'NVRM|Xid'`, and at the code in the CUDA Driver API reference";
  }
  if (gpu && code == 46 && gpu->in_nvml) {
    if (gpu->in_nvml->compute_mode)
      finding.evidence.push_back("its compute mode is " + *gpu->in_nvml->compute_mode);
    for (const cuda::GpuProcess& process : gpu->in_nvml->processes)
      finding.evidence.push_back(fmt::format("process {} {} is in it", process.pid, process.name));
  }
  for (const cuda::NvmlGpu& seen : facts.nvml.gpus) {
    if (!seen.problem.empty())
      finding.evidence.push_back(fmt::format("NVML says of GPU {}: {}", seen.index, seen.problem));
  }
  if (gpu && gpu->capability && (code == 209 || code == 222 || code == 223)) {
    finding.evidence.push_back(fmt::format(
        "its compute capability is {}.{}", *gpu->capability / 10, *gpu->capability % 10));
  }
  for (const Xid& xid : facts.machine.xids) {
    if (gpu && !gpu->pci.starts_with(xid.address)) continue;
    finding.evidence.push_back(fmt::format("the kernel reported Xid {}: {}", xid.code, xid.text));
  }
  return finding;
}

}  // namespace launchgap::doctor
