// Questions about hardware and software that need not be in the machine.
#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/doctor/frameworks/frameworks.h"

namespace launchgap::doctor {
namespace {

/// With what is asked about in place of what the machine has. A GPU that is named stands for
/// another machine: then nothing of this one counts.
Setup assumed(const WhatIf& question, const Setup& machine) {
  Setup setup = machine;
  const bool other_machine = !question.gpus.empty();
  const bool anything = other_machine || !question.driver.empty() || !question.cuda.empty() ||
                        !question.cudnn.empty();
  if (other_machine) {
    setup = Setup{};
    setup.installed = machine.installed;
    setup.gpus_known = true;
    for (const std::string& name : question.gpus) {
      const GpuIdentity gpu = require_gpu(name);
      setup.gpus.push_back({gpu.name, gpu.capability, ""});
    }
  } else if (anything) {
    // That this machine has no GPU or no driver is beside the point of what was asked.
    if (setup.gpus.empty()) setup.gpus_known = false;
    if (!setup.driver) setup.driver_known = false;
  }
  if (!question.driver.empty()) {
    setup.driver_known = true;
    setup.driver.reset();
    setup.driver_cuda.reset();
    if (question.driver != "none") setup.driver = Version::require(question.driver, "--driver");
  }
  if (!question.cuda.empty()) {
    setup.toolkits = {Version::require(question.cuda, "--cuda")};
    setup.sonames.clear();
    setup.libraries_known = false;
  }
  if (!question.cudnn.empty()) setup.cudnn = Version::require(question.cudnn, "--cudnn");
  return setup;
}

/// What was named must exist, and go together.
void check(const WhatIf& question, const Setup& setup) {
  if (!question.cuda.empty()) {
    const Verdict exists = toolkit_exists(setup.toolkits.front());
    if (!exists.yes()) throw UsageError("--cuda: " + exists.reason);
  }
  if (question.driver.empty() || question.cuda.empty() || !setup.driver) return;
  const Verdict serves = driver_serves_toolkit(*setup.driver, setup.toolkits.front());
  if (serves.no()) {
    throw UsageError(fmt::format("--driver {} and --cuda {} do not go together: {}",
                                 question.driver,
                                 question.cuda,
                                 serves.reason));
  }
}

/// No framework was named: what is the newest of everything for each GPU.
Answer answer_without_framework(const Setup& setup) {
  Answer answer;
  for (const SetupGpu& gpu : setup.gpus) {
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
    std::optional<Version> driver = setup.driver;
    if (driver && driver_knows_gpu(*driver, *gpu.capability).no()) {
      answer.notes.push_back(driver_knows_gpu(*driver, *gpu.capability).reason);
      driver.reset();
    }
    out.newest_toolkit = newest_toolkit(*gpu.capability, driver);
    for (const char* framework : {"tensorflow", "torch"}) {
      out.newest.push_back(newest_builds(framework, *gpu.capability, driver));
    }
    answer.gpus.push_back(out);
  }
  return answer;
}

}  // namespace

Answer what_if(const WhatIf& question, const Setup& machine) {
  std::optional<Requirement> requirement;
  if (!question.framework.empty()) requirement = Requirement::parse(question.framework);
  const Setup setup = assumed(question, machine);
  check(question, setup);
  if (!requirement) return answer_without_framework(setup);
  return answer(*requirement, setup);
}

}  // namespace launchgap::doctor
