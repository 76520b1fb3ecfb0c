// Does a build use the GPUs of an installation: one verdict per GPU.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/doctor/compatibility/framework_question.h"

namespace launchgap::doctor {

GpuAnswer FrameworkQuestion::judge(const InstalledGpu& gpu) {
  GpuAnswer out;
  out.gpu = gpu;
  if (!gpu.capability) {
    out.reason = "its compute capability is not known";
    return out;
  }
  const Capability capability = *gpu.capability;
  if (const ArchitectureRow* const life = life_of(capability)) {
    out.architecture = life->architecture;
    if (life->driver_branch_applies) out.last_driver_branch = life->last_driver_branch;
  }
  // A driver that cannot serve the GPU will be replaced, so it does not bound what is the newest.
  const bool usable = !driver_verdict(gpu).no();
  if (!usable) out.newest_after = driver_for(gpu);
  std::optional<Version> driver = usable ? installation_.driver : std::nullopt;
  if (driver && driver_knows_gpu(*driver, capability).no()) {
    // The driver lists it all the same.
    driver.reset();
    out.last_driver_branch.reset();
  }
  out.newest_toolkit = newest_toolkit(capability, driver);
  out.newest.push_back(newest_builds(requirement_.framework, capability, driver));
  if (requirement_.is_range() && !cpu_only_) {
    const Newest in_range =
        newest_builds(requirement_.framework, capability, driver, &requirement_);
    if (in_range.certain || in_range.possible) out.newest.front() = in_range;
  }
  if (cpu_only_) {
    out.outcome = Outcome::silent_cpu;
    out.reason = "this build has no code for GPUs";
  } else {
    judge_build(out);
    if (requirement_.is_range() && usable && !no_driver()) describe_range(out);
  }
  return out;
}

/// What of a range works, where the newest that it allows does not.
void FrameworkQuestion::describe_range(GpuAnswer& out) const {
  if (out.outcome != Outcome::fails && out.outcome != Outcome::silent_cpu) return;
  if (out.has_code != Truth::no && !driver_verdict().no()) return;  // another version has it, too
  const Newest& newest = out.newest.front();
  const auto allowed = [&](const std::optional<NewestBuild>& build) {
    return build && requirement_.allows(build->version);
  };
  const std::string fails =
      fmt::format("pip would install {}, which {}",
                  version_->text(),
                  out.outcome == Outcome::fails ? "fails" : "uses the CPU, without an error");
  if (!allowed(newest.certain)) {
    out.range = fmt::format("no version of it is known to work; {}", fails);
    return;
  }
  const NewestBuild& build = *newest.certain;
  out.range = fmt::format("works up to {}, in the build for CUDA {}{}; {}",
                          build.version.text(),
                          build.cuda.text(),
                          build.cudnn_knows_gpu.no()
                              ? allowed(newest.with_cudnn)
                                    ? fmt::format(" (convolutions by cuDNN up to {} with {})",
                                                  newest.with_cudnn->version.text(),
                                                  newest.with_cudnn->cuda.text())
                                    : " (without convolutions by cuDNN)"
                              : "",
                          fails);
}

/// Lowest layer first, with one exception: where the build has no code for the GPU, a newer driver
/// would not help, and is not what is advised.
void FrameworkQuestion::judge_build(GpuAnswer& out) {
  const Capability capability = *out.gpu.capability;
  const CodeVerdict code = answer_.build
                               ? code_runs(answer_.build->code, answer_.build->cuda, capability)
                               : CodeVerdict{};
  out.has_code = code.verdict.truth;
  if (const Verdict known = driver_verdict(out.gpu); known.no()) return driver_refuses(out, known);
  if (code.verdict.no()) return no_code(out, code.verdict);
  if (const auto cause = driver_cause()) {
    out.outcome = no_driver() && driver_missing_is_silent() ? Outcome::silent_cpu : Outcome::fails;
    out.reason = no_driver() ? "there is no NVIDIA driver"
                             : fmt::format("driver {} is too old", driver_text());
    return;
  }
  if (!answer_.build) {
    out.reason = "the version is in no table";
    return;
  }
  if (!answer_.missing.empty()) {
    out.outcome = missing_is_silent_ ? Outcome::silent_cpu : Outcome::fails;
    out.reason = fmt::format("{} is missing", answer_.missing.front());
    return;
  }
  if (cudnn_cause()) {
    out.outcome = Outcome::fails;
    out.reason = fmt::format("cuDNN {} is not accepted", installation_.cudnn->text());
    return;
  }
  if (code.verdict.truth == Truth::unknown) {
    out.reason = code.verdict.reason;
    return;
  }
  works(out, code);
}

void FrameworkQuestion::works(GpuAnswer& out, const CodeVerdict& code) {
  out.outcome = Outcome::works;
  out.reason = code.verdict.reason;
  if (answer_.build->source.recalled("compute_capabilities")) out.reason += " (not confirmed)";
  if (code.compiled_at_start) {
    out.outcome = Outcome::works_after_compiling;
    out.brief = "the driver compiles its PTX at the first start, for half an hour or so";
    out.reason +=
        ", at the first start, which can take half an hour; CUDA " + answer_.build->cuda.text() +
        " and its libraries are older than this GPU, so that not all of it is sure to work";
    const Verdict compiles =
        installation_.driver ? driver_compiles_ptx_of(*installation_.driver, answer_.build->cuda)
                             : Verdict{};
    if (compiles.no()) {
      out.outcome = Outcome::fails;
      out.reason = fmt::format("driver {} does not compile its PTX", installation_.driver->text());
      out.brief.clear();
      add_gpu_finding(out,
                      {"driver-too-old",
                       Severity::prevents,
                       fmt::format("{} has only PTX for {}, which driver {} does not compile",
                                   answer_.subject,
                                   name_and_capability(out.gpu),
                                   installation_.driver->text()),
                       evidence_of(compiles),
                       fmt::format("update NVIDIA's driver to {} or newer",
                                   driver_needed_by(answer_.build->cuda)->bundled.text()),
                       {"CUDA: the provided PTX was compiled with an unsupported toolchain."}});
      return;
    }
  }
  cudnn_without_code(out);
}

std::string_view name_of(Outcome outcome) {
  constexpr std::string_view kNames[] = {
      "works", "works-after-compiling", "silent-cpu", "fails", "unknown"};
  return kNames[static_cast<std::size_t>(outcome)];
}

FrameworkAnswer answer(const Requirement& requirement, const Installation& installation) {
  return FrameworkQuestion(requirement, installation).answer();
}

}  // namespace launchgap::doctor
