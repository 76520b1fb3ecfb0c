// Why a build does not use the GPU: the causes that lie in the driver.
#include <algorithm>

#include <fmt/format.h>

#include "harness/doctor/compatibility/framework_question.h"

namespace launchgap::doctor {

std::string need_text(const DriverNeed& need, std::optional<int> last_branch) {
  // A newer driver would not know the GPU any more.
  return last_branch ? fmt::format("{} to R{}", need.minimum.text(), *last_branch)
                     : fmt::format("{} or newer", need.minimum.text());
}

std::string kind_of(Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  return life ? fmt::format("{} {}", life->architecture, capability.text()) : capability.text();
}

namespace {

bool is_too_new(const Version& driver, Capability capability) {
  return driver_knows_gpu(driver, capability).no();
}

}  // namespace

std::string driver_for(const InstalledGpu& gpu) {
  const ArchitectureRow* const life = life_of(*gpu.capability);
  if (life && life->last_driver_branch)
    return fmt::format("a driver of branch R{}", *life->last_driver_branch);
  const auto first = first_driver_of(*gpu.capability);
  return first ? fmt::format("driver {} or newer", first->text()) : "another driver";
}

Cause driver_cannot_serve(const InstalledGpu& gpu, const Version& driver, const Verdict& verdict) {
  const ArchitectureRow& life = *life_of(*gpu.capability);
  const std::string cannot =
      fmt::format("{} cannot be used with driver {}", name_and_capability(gpu), driver.text());
  if (is_too_new(driver, *gpu.capability)) {
    return {"architecture-dropped-by-driver",
            Severity::prevents,
            fmt::format("{}: it no longer supports {}, the last branch is R{}",
                        cannot,
                        life.architecture,
                        *life.last_driver_branch),
            evidence_of(verdict),
            fmt::format("install {}", driver_for(gpu)),
            {"nvidia-smi: No devices were found"}};
  }
  return {"driver-too-old",
          Severity::prevents,
          fmt::format("{}: it needs {} or newer", cannot, first_driver_of(life.capability)->text()),
          evidence_of(verdict),
          fmt::format("update NVIDIA's driver to {} or newer",
                      first_driver_of(life.capability)->text()),
          {"nvidia-smi: No devices were found"}};
}

/// What the build needs of a driver, no older than its GPUs and no newer than what the oldest GPU
/// that it can use still has.
std::pair<std::optional<DriverNeed>, std::optional<int>> FrameworkQuestion::needed_driver() const {
  auto need = answer_.build ? driver_needed_by(answer_.build->cuda) : std::nullopt;
  std::optional<int> last;
  for (const InstalledGpu& gpu : installation_.gpus) {
    const ArchitectureRow* const life = gpu.capability ? life_of(*gpu.capability) : nullptr;
    const auto first = life ? first_driver_of(*gpu.capability) : std::nullopt;
    if (need && first) need->minimum = std::max(need->minimum, *first);
    if (!life || !life->driver_branch_applies || !life->last_driver_branch) continue;
    if (need && need->minimum.major() > *life->last_driver_branch) continue;
    last = std::min(last.value_or(*life->last_driver_branch), *life->last_driver_branch);
  }
  return {need, last};
}

/// TensorFlow 1.1 to 1.13 links libcuda.so.1: without it `import tensorflow` fails.
bool FrameworkQuestion::driver_missing_is_silent() const {
  if (torch() || !version_) return !torch();
  for (const FrameworkLibraryRow& row : tables().framework_libraries) {
    if (row.name == "cuda" && row.framework == requirement_.framework &&
        row.versions.contains(*version_)) {
      return row.silent;
    }
  }
  return true;
}

Cause FrameworkQuestion::no_driver_cause(const std::string& needed) const {
  const bool import_fails = !torch() && !driver_missing_is_silent();
  const std::string missing =
      "libcuda.so.1: cannot open shared object file: No such file or directory";
  Cause cause{"framework-needs-driver",
              Severity::prevents,
              fmt::format("there is no NVIDIA driver, so {} {}",
                          answer_.subject,
                          torch()        ? "cannot use a GPU"
                          : import_fails ? "cannot be imported"
                                         : "computes on the CPU without an error"),
              {"no driver is loaded"},
              needed.empty() ? "install NVIDIA's driver"
                             : fmt::format("install NVIDIA's driver {}", needed),
              {}};
  if (torch()) {
    cause.symptoms = {"PyTorch: RuntimeError: Found no NVIDIA driver on your system. …"};
  } else if (import_fails) {
    cause.symptoms = {"Python: ImportError: " + missing};
  } else {
    cause.symptoms = {
        "TensorFlow: Could not load dynamic library 'libcuda.so.1'; dlerror: " + missing,
        "TensorFlow: failed call to cuInit: UNKNOWN ERROR (303)"};
  }
  cause.symptoms.emplace_back(
      "CUDA's runtime: CUDA driver version is insufficient for CUDA runtime version");
  return cause;
}

std::optional<Cause> FrameworkQuestion::driver_cause() const {
  const auto [need, last] = needed_driver();
  const std::string needed = need ? need_text(*need, last) : "";
  if (no_driver()) return no_driver_cause(needed);
  const Verdict serves = driver_verdict();
  if (!serves.no()) return std::nullopt;
  return Cause{
      "driver-too-old",
      Severity::prevents,
      fmt::format("driver {} is too old for {}, which was built with CUDA {}",
                  driver_text(),
                  answer_.subject,
                  answer_.build->cuda.text()),
      evidence_of(serves),
      fmt::format("update NVIDIA's driver to {}", needed),
      {torch() ? "PyTorch: RuntimeError: The NVIDIA driver on your system is too old …"
               : "CUDA's runtime: CUDA driver version is insufficient for CUDA runtime version"}};
}

/// Whether the driver serves a GPU at all; what the driver says of itself comes before a table.
Verdict FrameworkQuestion::driver_verdict(const InstalledGpu& gpu) const {
  if (!installation_.driver || !gpu.capability) return {};
  if (gpu.listed_by_driver) return {Truth::yes, "the driver lists it"};
  return driver_serves_gpu(*installation_.driver, *gpu.capability);
}

void FrameworkQuestion::driver_refuses(GpuAnswer& out, const Verdict& verdict) {
  ++hopeless_gpus_;
  out.outcome = torch() ? Outcome::fails : Outcome::silent_cpu;
  out.reason = verdict.reason;
  out.brief = fmt::format("driver {} cannot serve this GPU", installation_.driver->text());
  Cause cause = driver_cannot_serve(out.gpu, *installation_.driver, verdict);
  const Newest& newest = out.newest.front();
  const bool has_code =
      answer_.build &&
      !code_runs(answer_.build->code, answer_.build->cuda, *out.gpu.capability).verdict.no();
  if (!has_code && newest.certain) {
    cause.remedy += fmt::format(", and {} ({}, the newest that works then, with a driver {})",
                                newest.certain->command(),
                                newest.certain->text(),
                                need_text(newest.certain->driver, out.last_driver_branch));
  }
  add_gpu_finding(out, cause);
}

}  // namespace launchgap::doctor
