// What is wrong with single GPUs: those that the driver does not list, those that are hidden, and
// those that did not pass the proof.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/rules/rules.h"
#include "kernels/images.h"
#include "kernels/kernels.h"

namespace launchgap::doctor {
namespace {

Finding about_gpu(const JoinedGpu& gpu,
                  const char* code,
                  std::string sentence,
                  const std::vector<std::string>& evidence,
                  std::string remedy) {
  return about(
      gpu.subject(), code, Severity::prevents, std::move(sentence), evidence, std::move(remedy));
}

std::optional<GpuIdentity> identity(const JoinedGpu& gpu) {
  return gpu.on_pci ? find_gpu_by_pci(gpu.on_pci->device_id) : std::nullopt;
}

bool is_container(const MachineFacts& facts) {
  return !facts.machine.container.empty();
}

/// The entry of CUDA_VISIBLE_DEVICES that ends its list early, and what is hidden by it.
std::vector<Finding> diagnose_visibility(const MachineFacts& facts) {
  std::vector<std::string> hidden;
  for (const JoinedGpu& gpu : facts.gpus) {
    if (gpu.hidden) hidden.push_back(gpu.subject());
  }
  const auto variable = facts.machine.environment.find("CUDA_VISIBLE_DEVICES");
  if (variable == facts.machine.environment.end() || !facts.unrestricted) return {};
  const VisibleDevices visible =
      read_visible_devices(variable->second, facts.unrestricted->devices);
  Finding finding;
  finding.subject = "machine";
  finding.evidence = {fmt::format("CUDA_VISIBLE_DEVICES is '{}'", variable->second)};
  for (const std::string& gpu : hidden) finding.evidence.push_back("hidden: " + gpu);
  if (visible.unknown) return {};
  if (visible.invalid) {
    finding.code = "cuda-visible-devices-invalid";
    finding.severity = Severity::distorts;
    finding.sentence = fmt::format(
        "CUDA_VISIBLE_DEVICES names '{}', but there is no such GPU: the list ends there, and later "
        "GPUs give error 101.",
        *visible.invalid);
    finding.remedy =
        fmt::format("name GPUs from 0 to {}, or by UUID", facts.unrestricted->devices.size() - 1);
    return {finding};
  }
  if (hidden.empty()) return {};
  finding.code = "hidden-by-cuda-visible-devices";
  finding.sentence = fmt::format("CUDA_VISIBLE_DEVICES hides {} of {} GPUs.",
                                 hidden.size(),
                                 facts.unrestricted->devices.size());
  finding.remedy = "nothing, if that is meant; otherwise `unset CUDA_VISIBLE_DEVICES`";
  return {finding};
}

/// A control group that gives a process some GPUs forbids the nodes of the others (EPERM).
bool is_granted(const JoinedGpu& gpu) {
  return gpu.in_driver || !gpu.node || gpu.node->open_error != EPERM;
}

/// GPUs of this machine that are for others.
std::vector<Finding> diagnose_grants(const MachineFacts& facts) {
  std::vector<std::string> evidence;
  if (facts.not_given > 0)
    evidence.push_back(fmt::format("this is {}, and {} more of its host's GPUs are on the bus",
                                   facts.machine.container,
                                   facts.not_given));
  for (const JoinedGpu& gpu : facts.gpus) {
    if (!is_granted(gpu))
      evidence.push_back(fmt::format("{}: {} may not be opened", gpu.subject(), gpu.node->path));
  }
  if (evidence.empty()) return {};
  return {{"gpus-of-others",
           Severity::note,
           "machine",
           "This machine has more GPUs than this process was given.",
           in_words(evidence),
           "nothing, if that is meant: ask the scheduler or the container's runtime for more"}};
}

// --- the proof
// ------------------------------------------------------------------------------------

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// cuDNN by its words: its numbers were dealt out anew with version 9.
Finding cudnn_finding(const JoinedGpu& gpu, const ProofStep& step) {
  const std::string& words = step.text.empty() ? step.detail : step.text;
  const std::vector<std::string> evidence = {step.detail};
  if (contains(words, "ARCH_MISMATCH")) {
    return about_gpu(
        gpu,
        "cudnn-has-no-code-for-gpu",
        "The loaded cuDNN has no code for this GPU: convolutions fail or run on the CPU; "
        "matrix products work.",
        evidence,
        "install a cuDNN that still has it: `launchgap doctor --gpu <name>` says which");
  }
  if (contains(words, "VERSION_MISMATCH")) {
    return about_gpu(
        gpu,
        "cudnn-mixed-versions",
        "The loaded parts of cuDNN have different versions.",
        evidence,
        "leave one cuDNN in the loader's way: LD_LIBRARY_PATH, the system's packages and "
        "pip's wheels each can bring one");
  }
  if (contains(words, "INCOMPATIBLE_CUDA_DRIVER")) {
    return about_gpu(gpu,
                     "driver-too-old",
                     "The driver is too old for the loaded cuDNN.",
                     evidence,
                     "install a newer driver, or the cuDNN for the driver's own CUDA (major)");
  }
  if (contains(words, "PREREQUISITE_MISSING") || contains(words, "SUBLIBRARY_UNAVAILABLE") ||
      contains(words, "SUBLIBRARY_LOADING_FAILED") || contains(words, "INCOMPATIBLE_CUDART")) {
    return about_gpu(
        gpu,
        "cudnn-prerequisite-missing",
        "cuDNN does not find a library that it needs, or not in the right version.",
        evidence,
        "install libcublas, libcublasLt, libnvrtc and zlib of the CUDA that this cuDNN is "
        "for, where the loader finds them");
  }
  if (contains(words, "NOT_INITIALIZED")) {
    return about_gpu(
        gpu,
        "cudnn-not-initialised",
        "cuDNN does not start on this GPU.",
        evidence,
        "see that it is for the driver's CUDA (major) and that memory is free: frameworks "
        "that take all of it first cause this too (TF_FORCE_GPU_ALLOW_GROWTH=true)");
  }
  return about_gpu(gpu,
                   "cudnn-fails",
                   "A convolution by cuDNN fails.",
                   evidence,
                   "look for the code in cuDNN's reference, and try with CUDNN_LOGLEVEL_DBG=3");
}

Finding missing_library(const JoinedGpu& gpu,
                        const char* code,
                        const char* does,
                        const ProofStep& step) {
  Finding finding =
      about_gpu(gpu,
                code,
                fmt::format("{} is not found, so launchgap measures no {} here; programs "
                            "that bring their own are not concerned.",
                            std::string(code) == "cublas-missing" ? "cuBLAS" : "cuDNN",
                            does),
                {step.detail},
                "`scripts/setup --with-cuda`, or the CUDA toolkit's packages");
  finding.severity = Severity::note;
  return finding;
}

Finding wrong_result(const JoinedGpu& gpu, const ProofStep& step) {
  return about_gpu(
      gpu,
      "wrong-result",
      fmt::format("The GPU computed a wrong result ({}): do not trust any of its results.",
                  step.name),
      {step.detail},
      "run `launchgap doctor` again, look at ECC counts and Xid lines (`dmesg`), and take "
      "the GPU out of work if it comes back");
}

Finding matmul_finding(const MachineFacts& facts, const JoinedGpu& gpu, const ProofStep& step) {
  if (step.status == "unsupported" && contains(step.detail, "could not be loaded"))
    return missing_library(gpu, "cublas-missing", "matrix products", step);
  if (contains(step.detail, "ARCH_MISMATCH") || step.code == 8) {
    return about_gpu(
        gpu,
        "cublas-has-no-code-for-gpu",
        "The loaded cuBLAS has no code for this GPU.",
        {step.detail},
        "install the cuBLAS of a CUDA that still has it: `launchgap doctor --gpu <name>` "
        "says which");
  }
  if (step.callee == "CUDA driver" && step.code)
    return finding_of_code(facts, &gpu, step.call, *step.code, step.text);
  return about_gpu(
      gpu,
      "cublas-fails",
      "A matrix product by cuBLAS fails.",
      {step.detail},
      "see that cuBLAS and cuBLASLt are of one version and for the driver's CUDA (major), "
      "and that memory is free");
}

std::optional<Finding> diagnose_proof(const MachineFacts& facts, const JoinedGpu& gpu) {
  if (!gpu.proof) return std::nullopt;
  const Proof& proof = *gpu.proof;
  if (!proof.died.empty()) {
    return about_gpu(
        gpu,
        proof.hung ? "proof-hangs" : "proof-crashes",
        fmt::format("Work on the GPU {}.", proof.hung ? "does not end" : "crashes"),
        {proof.died},
        "look for Xid lines in `dmesg`, and for broken copies of cuBLAS and cuDNN in the "
        "loader's way");
  }
  for (const ProofStep& step : proof.steps) {
    if (step.status == "ok" || step.name == "load") continue;
    if (step.status == "wrong") return wrong_result(gpu, step);
    if (step.name == "matmul") return matmul_finding(facts, gpu, step);
    if (step.name == "convolution") {
      if (step.status == "unsupported" && contains(step.detail, "could not be loaded"))
        return missing_library(gpu, "cudnn-missing", "convolutions", step);
      if (step.callee == "CUDA driver" && step.code)
        return finding_of_code(facts, &gpu, step.call, *step.code, step.text);
      return cudnn_finding(gpu, step);
    }
    if (step.code) return finding_of_code(facts, &gpu, step.call, *step.code, step.text);
    return about_gpu(
        gpu,
        "proof-fails",
        fmt::format("The GPU cannot be used ({}).", step.name),
        {step.detail},
        "build launchgap with clang and nvcc at hand, if it says that there is no device "
        "code; otherwise look at `dmesg`");
  }
  return std::nullopt;
}

}  // namespace

/// The GPU's last driver branch was before the driver that runs.
std::optional<Finding> why_dropped(const MachineFacts& facts, const JoinedGpu& gpu) {
  const auto known = identity(gpu);
  const auto& driver =
      facts.machine.module_version ? facts.machine.module_version : facts.nvml.driver_version;
  if (!known || !driver) return std::nullopt;
  const Verdict verdict = driver_knows_gpu(*driver, known->capability);
  if (!verdict.no()) return std::nullopt;
  const ArchitectureRow* const life = life_of(known->capability);
  Finding finding = about_gpu(
      gpu,
      "architecture-dropped-by-driver",
      fmt::format("The driver {} has no support for {} GPUs (compute capability {}).",
                  driver->text(),
                  known->architecture,
                  known->capability.text()),
      {fmt::format("{} is on the PCI bus and the driver does not list it", known->name),
       fmt::format("{} ({})", verdict.reason, verdict.source)},
      life && life->last_driver_branch
          ? fmt::format(
                "install the last branch that has it, R{0}, by NVIDIA's installer ({1}); a newer "
                "GPU in the same machine may need a newer branch, and then one of them has to go",
                *life->last_driver_branch,
                *life->last_driver_branch == 470
                    ? "470.256.02; Debian 12 has it as nvidia-tesla-470-driver"
                    : "its newest release")
          : "install a driver that knows this GPU");
  return finding;
}

std::optional<Finding> why_lost(const MachineFacts& facts, const JoinedGpu& gpu) {
  std::vector<std::string> evidence;
  bool nvml_lost = false;
  // One that is lost has no name in NVML; it is this one if no other is missing there.
  const auto missing = std::ranges::count_if(
      facts.gpus, [](const JoinedGpu& other) { return !other.in_nvml && !other.in_driver; });
  for (const cuda::NvmlGpu& seen : facts.nvml.gpus) {
    const bool nobody = seen.uuid.empty() && seen.pci_bus_id.empty();
    if (seen.problem.empty() || !((nobody && missing == 1) || &seen == gpu.in_nvml)) continue;
    nvml_lost = nvml_lost || seen.lost;
    evidence.push_back(fmt::format("NVML says of GPU {}: {}", seen.index, seen.problem));
  }
  bool fell_off = false;
  for (const Xid& xid : facts.machine.xids) {
    if (gpu.pci.empty() || !gpu.pci.starts_with(xid.address)) continue;
    evidence.push_back(fmt::format("the kernel reported Xid {}: {}", xid.code, xid.text));
    fell_off = fell_off || xid.code == 79;
  }
  if (!fell_off && !nvml_lost) return std::nullopt;
  return about_gpu(
      gpu,
      "gpu-lost",
      "The GPU has fallen off the bus.",
      evidence,
      "restart the machine, and if it happens again look at power, cooling and the seat "
      "of the card; it will not come back by itself");
}

Finding why_not_listed(const MachineFacts& facts, const JoinedGpu& gpu) {
  if (gpu.on_pci && !gpu.on_pci->bound_to.empty() && gpu.on_pci->bound_to != "nvidia") {
    Finding finding = about_gpu(
        gpu,
        "gpu-bound-elsewhere",
        fmt::format("The kernel driver {} has the GPU, so NVIDIA's cannot use it.",
                    gpu.on_pci->bound_to),
        {fmt::format("/sys/bus/pci/devices/{}/driver is {}", gpu.pci, gpu.on_pci->bound_to)},
        "nothing, if it is meant for a virtual machine; otherwise take it away from that "
        "driver (`driverctl unset-override`) and restart");
    if (gpu.on_pci->bound_to == "vfio-pci") finding.severity = Severity::note;
    return finding;
  }
  if (auto finding = why_lost(facts, gpu)) return *std::move(finding);
  if (auto finding = why_dropped(facts, gpu)) return *std::move(finding);
  if (gpu.in_nvml && gpu.in_nvml->mig == true && gpu.in_nvml->mig_instances == 0) {
    return about_gpu(
        gpu,
        "mig-without-instance",
        "The GPU is in MIG mode and has no instance, so there is nothing to compute on.",
        {fmt::format("NVML shows MIG mode on and no instance on {}", gpu.subject())},
        "as root make instances (`nvidia-smi mig -cgi <profile> -C`), or leave the mode "
        "(`nvidia-smi -mig 0`)");
  }
  if (gpu.node && gpu.node->open_error != 0) {
    const bool lost = gpu.node->open_error == EPERM && is_container(facts);
    return about_gpu(gpu,
                     !gpu.node->exists ? "device-nodes-missing"
                     : lost            ? "container-lost-devices"
                                       : "device-node-denied",
                     !gpu.node->exists ? fmt::format("{} is missing.", gpu.node->path)
                                       : fmt::format("{} cannot be opened.", gpu.node->path),
                     nodes_in_trouble(facts),
                     is_container(facts)
                         ? "start the container again with this GPU"
                         : "`nvidia-modprobe -c <N>` as root makes it; its owner and "
                           "mode decide who may use it");
  }
  if (gpu.in_nvml && gpu.in_nvml->compute_mode == "prohibited") {
    return about_gpu(gpu,
                     "compute-mode-prohibited",
                     "The GPU's compute mode forbids computing on it.",
                     {"NVML says its compute mode is prohibited"},
                     "as root `nvidia-smi -c DEFAULT`");
  }
  const auto known = identity(gpu);
  if (facts.machine.module_version && known) {
    const Capability turing{7, 5}, blackwell{10, 0};
    const bool too_old = facts.machine.open_module && known->capability < turing;
    const bool too_new = !facts.machine.open_module && blackwell <= known->capability;
    if (too_old || too_new) {
      return about_gpu(
          gpu,
          "kernel-modules-of-other-kind",
          fmt::format("{} ({}) needs NVIDIA's {} kernel modules, but the others are loaded.",
                      known->name,
                      known->architecture,
                      too_old ? "proprietary" : "open"),
          {kernel_driver(facts),
           "open modules serve Turing and newer, the others up to Hopper and Ada"},
          too_old ? "install the driver with its proprietary modules (packages without -open, "
                    "NVIDIA's installer with -M=proprietary)"
                  : "install the driver with its open modules (packages with -open, NVIDIA's "
                    "installer with -M=open)");
    }
  }
  return about_gpu(
      gpu,
      "driver-lists-no-gpu",
      fmt::format("The driver does not list {}.", known ? known->name : "the GPU"),
      {gpu.in_nvml ? "NVML shows it" : "it is on the PCI bus, and NVML does not show it",
       kernel_driver(facts)},
      "look at `dmesg | grep NVRM`: it says if the GPU is newer than the driver, lacks "
      "resources of the firmware, or did not start");
}

/// launchgap's own kernels: a build without clang has none for GPUs that its nvcc did not know.
std::optional<Finding> why_no_kernels(const JoinedGpu& gpu) {
  if (!gpu.capability) return std::nullopt;
  const bool native = std::ranges::any_of(kernels::native_architectures(), [&](int built_for) {
    return built_for / 10 == *gpu.capability / 10 && built_for <= *gpu.capability;
  });
  if (native || !kernels::images_of(kernels::increment_kernel).portable.empty())
    return std::nullopt;
  return about_gpu(gpu,
                   "launchgap-has-no-kernels",
                   fmt::format("This launchgap has no kernels for compute capability {}.{}.",
                               *gpu.capability / 10,
                               *gpu.capability % 10),
                   {fmt::format("machine code for {}, and no portable PTX",
                                fmt::join(kernels::native_architectures(), ", "))},
                   "build it where clang is installed (scripts/setup does that)");
}

std::vector<Finding> diagnose_gpus(const MachineFacts& facts) {
  std::vector<Finding> findings = diagnose_visibility(facts);
  for (Finding& finding : diagnose_grants(facts)) findings.push_back(std::move(finding));
  const bool partitioned = std::ranges::any_of(
      facts.gpus, [](const JoinedGpu& gpu) { return gpu.in_driver && is_instance(gpu); });
  for (const JoinedGpu& gpu : facts.gpus) {
    if (gpu.hidden || !is_granted(gpu)) continue;
    if (!gpu.in_driver) {
      // A process that sees an instance of a partitioned GPU sees no other GPU.
      if (partitioned) continue;
      findings.push_back(why_not_listed(facts, gpu));
      // Beside one that works it may be meant so: a card for the display, one for a virtual
      // machine.
      if (findings.back().code == "gpu-bound-elsewhere") findings.back().severity = Severity::note;
    } else if (gpu.in_nvml && gpu.in_nvml->compute_mode == "prohibited") {
      findings.push_back(why_not_listed(facts, gpu));
    } else if (auto without_kernels = why_no_kernels(gpu)) {
      findings.push_back(*std::move(without_kernels));
    } else if (auto finding = diagnose_proof(facts, gpu)) {
      findings.push_back(*std::move(finding));
    }
  }
  return findings;
}

}  // namespace launchgap::doctor
