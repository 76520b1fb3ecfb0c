// Questions about hardware and software that need not be in the machine.
#include "harness/doctor/compatibility/what_if.h"

#include <optional>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/framework_question.h"

namespace launchgap::doctor {
namespace {

/// With what is asked about in place of what the machine has. A GPU that is named stands for
/// another machine: then nothing of this one counts.
Installation assumed(const WhatIf& question, const Installation& machine) {
  Installation installation = machine;
  const bool other_machine = !question.gpus.empty();
  const bool anything = other_machine || !question.driver.empty() || !question.cuda.empty() ||
                        !question.cudnn.empty();
  if (other_machine) {
    installation = Installation{};
    installation.installed = machine.installed;
    installation.python = machine.python;
    installation.gpus_known = true;
    for (const std::string& name : question.gpus) {
      const GpuIdentity gpu = require_gpu(name);
      installation.gpus.push_back({.name = gpu.name, .capability = gpu.capability, .id = ""});
    }
  } else if (anything) {
    // That this machine has no GPU or no driver is beside the point of what was asked.
    if (installation.gpus.empty()) installation.gpus_known = false;
    if (!installation.driver) installation.driver_known = false;
  }
  if (!question.driver.empty()) {
    installation.driver_known = true;
    installation.driver.reset();
    installation.driver_cuda.reset();
    for (InstalledGpu& gpu : installation.gpus) gpu.listed_by_driver = false;
    if (question.driver != "none")
      installation.driver = Version::require(question.driver, "--driver");
  }
  if (!question.cuda.empty()) {
    installation.toolkits = {Version::require(question.cuda, "--cuda")};
    installation.sonames.clear();
    installation.libraries_known = false;
  }
  if (!question.cudnn.empty()) installation.cudnn = Version::require(question.cudnn, "--cudnn");
  return installation;
}

/// What was named must exist, and go together.
void check(const WhatIf& question, const Installation& installation) {
  if (!question.cuda.empty()) {
    const Verdict exists = toolkit_exists(installation.toolkits.front());
    if (!exists.yes()) throw UsageError("--cuda: " + exists.reason);
  }
  if (question.driver.empty() || question.cuda.empty() || !installation.driver) return;
  const Verdict serves = driver_serves_toolkit(*installation.driver, installation.toolkits.front());
  if (serves.no()) {
    throw UsageError("--driver {} and --cuda {} do not go together: {}",
                     question.driver,
                     question.cuda,
                     serves.reason);
  }
}

/// What was named is about a framework or a GPU.
void check_is_a_question(const WhatIf& question) {
  if (!question.framework.empty() || !question.gpus.empty()) return;
  for (const auto& [option, value] : {std::pair("--driver", &question.driver),
                                      std::pair("--cuda", &question.cuda),
                                      std::pair("--cudnn", &question.cudnn)}) {
    if (!value->empty())
      throw UsageError("{} needs --for or --gpu: what is to be answered?", option);
  }
}

/// A toolkit that does not have a GPU.
std::optional<Cause> toolkit_cause(const InstalledGpu& gpu, const Version& toolkit) {
  const Verdict knows = toolkit_knows_gpu(toolkit, *gpu.capability);
  if (!knows.no()) return std::nullopt;
  const ArchitectureRow& life = *life_of(*gpu.capability);
  const bool too_old = toolkit < life.first_toolkit;
  const std::string& other = (too_old ? life.first_toolkit : *life.last_toolkit).text();
  return Cause{"toolkit-has-no-code-for-gpu",
               Severity::prevents,
               fmt::format("{} cannot be used with CUDA {}: the {} with {} is {}",
                           name_and_capability(gpu),
                           toolkit.text(),
                           too_old ? "first" : "last",
                           life.architecture,
                           other),
               evidence_of(knows),
               fmt::format("install CUDA {}{}", other, too_old ? " or newer" : ""),
               {}};
}

std::optional<Cause> cudnn_cause(const InstalledGpu& gpu,
                                 const Version& cudnn,
                                 const std::optional<Version>& cuda) {
  if (!cuda) return std::nullopt;
  const Verdict knows = cudnn_knows_gpu(cudnn, *cuda, *gpu.capability);
  if (!knows.no()) return std::nullopt;
  return Cause{"cudnn-has-no-code-for-gpu",
               Severity::prevents,
               fmt::format("cuDNN {} has no code for {}", cudnn.text(), name_and_capability(gpu)),
               evidence_of(knows),
               "install an older cuDNN",
               {}};
}

/// The one thing that keeps a GPU from what was named with it, the driver first.
std::optional<Cause> cause_without_framework(const GpuAnswer& out,
                                             const Installation& installation) {
  const InstalledGpu& gpu = out.gpu;
  const std::optional<Version> toolkit =
      installation.toolkits.empty() ? std::nullopt : std::optional(installation.toolkits.front());
  if (installation.driver && !gpu.listed_by_driver) {
    const Verdict serves = driver_serves_gpu(*installation.driver, *gpu.capability);
    if (serves.no()) return driver_cannot_serve(gpu, *installation.driver, serves);
  }
  if (toolkit) {
    if (auto cause = toolkit_cause(gpu, *toolkit)) return cause;
  }
  if (installation.cudnn)
    return cudnn_cause(gpu, *installation.cudnn, toolkit ? toolkit : out.newest_toolkit);
  return std::nullopt;
}

/// No framework was named: what is the newest of everything for each GPU, and whether what was
/// named goes together.
FrameworkAnswer answer_without_framework(const Installation& installation) {
  FrameworkAnswer answer;
  for (const InstalledGpu& gpu : installation.gpus) {
    GpuAnswer out;
    out.gpu = gpu;
    out.reason = "no framework was asked for";
    if (!gpu.capability) {
      out.reason = "its compute capability is not known";
      answer.gpus.push_back(out);
      continue;
    }
    const ArchitectureRow* const life = life_of(*gpu.capability);
    if (life) out.architecture = life->architecture;
    if (life && life->driver_branch_applies) out.last_driver_branch = life->last_driver_branch;
    std::optional<Version> driver = installation.driver;
    if (driver && driver_serves_gpu(*driver, *gpu.capability).no()) {
      if (!gpu.listed_by_driver) out.newest_after = driver_for(gpu);
      driver.reset();
    }
    out.newest_toolkit = newest_toolkit(*gpu.capability, driver);
    for (const char* framework : {"tensorflow", "torch"})
      out.newest.push_back(newest_builds(framework, *gpu.capability, driver));
    if (const auto cause = cause_without_framework(out, installation)) {
      const std::string subject = gpu.id.empty() ? name_and_capability(gpu) : gpu.id;
      answer.findings.push_back(finding_of(*cause, subject));
    }
    answer.gpus.push_back(out);
  }
  answer.findings = merged_alike(std::move(answer.findings));
  return answer;
}

}  // namespace

FrameworkAnswer what_if(const WhatIf& question, const Installation& machine) {
  std::optional<Requirement> requirement;
  if (!question.framework.empty()) requirement = Requirement::parse(question.framework);
  const Installation installation = assumed(question, machine);
  check(question, installation);
  check_is_a_question(question);
  if (!requirement) return answer_without_framework(installation);
  return answer(*requirement, installation);
}

// --- The last software that serves a GPU ---

namespace {

constexpr const char* kCurrent = "current";

std::optional<Capability> capability_of(std::string_view gpu, std::string_view capability) {
  if (const auto known = find_gpu(gpu)) return known->capability;
  if (capability.empty()) return std::nullopt;
  const auto known = find_gpu(capability);
  return known ? std::optional(known->capability) : std::nullopt;
}

/// The newest release of cuDNN that a confirmed row has for the GPU. Open where the newest row has
/// no upper end.
std::optional<LastSupport> last_cudnn(Capability capability) {
  std::optional<LastSupport> last;
  std::optional<Version> newest;
  for (const CudnnRow& row : tables().cudnn) {
    if (row.source.recalled("min_cc") || row.source.recalled("cudnn") || !row.minimum ||
        capability < *row.minimum || (row.maximum && *row.maximum < capability))
      continue;
    const std::vector<Version> versions = row.cudnn.versions();
    if (versions.empty() || (newest && !(*newest < versions.back()))) continue;
    newest = versions.back();
    const bool open = row.cudnn.text().ends_with('+');
    last = LastSupport{"cuDNN", open ? std::string(kCurrent) : newest->text(), row.source.text};
  }
  return last;
}

}  // namespace

std::vector<LastSupport> last_support(std::string_view gpu, std::string_view capability) {
  const auto known = capability_of(gpu, capability);
  if (!known) return {};
  std::vector<LastSupport> all;
  if (const ArchitectureRow* const life = life_of(*known)) {
    all.push_back({"CUDA toolkit",
                   life->last_toolkit ? life->last_toolkit->text() : kCurrent,
                   life->source.text});
    if (life->driver_branch_applies)
      all.push_back({"driver",
                     life->last_driver_branch ? fmt::format("R{}", *life->last_driver_branch)
                                              : std::string(kCurrent),
                     life->source.text});
  }
  if (auto cudnn = last_cudnn(*known)) all.push_back(*std::move(cudnn));
  for (const char* framework : {"tensorflow", "torch"}) {
    const Newest newest = newest_builds(framework, *known, std::nullopt);
    if (newest.certain)
      all.push_back({title_of(framework),
                     fmt::format("{} with CUDA {} ({})",
                                 newest.certain->version.text(),
                                 newest.certain->cuda.text(),
                                 newest.certain->package),
                     "data/tensorflow_builds.csv, data/pytorch_builds.csv"});
  }
  return all;
}

}  // namespace launchgap::doctor
