// Why a build does not use the GPU: the causes that are findings.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/doctor/frameworks/question.h"
#include "harness/doctor/printable.h"

namespace launchgap::doctor {

std::vector<std::string> evidence_of(const Verdict& verdict) {
  std::vector<std::string> evidence = {verdict.reason};
  if (!verdict.source.empty()) {
    evidence.push_back(fmt::format(
        "{}: {}", verdict.recalled ? "by a row that was not confirmed" : "source", verdict.source));
  }
  return evidence;
}

std::string name_and_capability(const SetupGpu& gpu) {
  const std::string name = printable(gpu.name.empty() ? "GPU" : gpu.name, 80);
  return gpu.capability ? fmt::format("{} ({})", name, gpu.capability->text()) : name;
}

std::string need_text(const DriverNeed& need, std::optional<int> last_branch) {
  // A newer driver would not know the GPU any more.
  const std::string end = last_branch ? fmt::format(", up to branch R{}", *last_branch) : "";
  return fmt::format("{} or newer{}", need.minimum.text(), end);
}

namespace {

Finding finding(const Cause& cause, std::string subject) {
  return {cause.code,
          cause.severity,
          std::move(subject),
          cause.sentence,
          cause.evidence,
          cause.remedy,
          cause.symptoms};
}

/// The newest version that works, as a sentence for a remedy; empty if there is none.
std::string newest_text(const GpuAnswer& gpu) {
  const Newest& newest = gpu.newest.front();
  const auto& build = newest.certain ? newest.certain : newest.possible;
  if (!build) return "";
  return fmt::format("{}{}, with driver {}",
                     build->text(),
                     newest.certain ? "" : " (by a row that was not confirmed)",
                     need_text(build->driver, gpu.last_driver_branch));
}

}  // namespace

std::optional<Cause> Question::driver_cause() const {
  auto need = answer_.build ? driver_needed_by(answer_.build->cuda) : std::nullopt;
  // No newer than what the oldest GPU that the build can use still has.
  std::optional<int> last;
  for (const SetupGpu& gpu : setup_.gpus) {
    const ArchitectureRow* const life = gpu.capability ? life_of(*gpu.capability) : nullptr;
    const auto first = life ? first_driver_of(*gpu.capability) : std::nullopt;
    if (need && first) need->minimum = std::max(need->minimum, *first);
    if (!life || !life->driver_branch_applies || !life->last_driver_branch) continue;
    if (need && need->minimum.major() > *life->last_driver_branch) continue;
    last = std::min(last.value_or(*life->last_driver_branch), *life->last_driver_branch);
  }
  const std::string driver = need ? need_text(*need, last) : "";
  if (no_driver()) {
    return Cause{"framework-needs-driver",
                 Severity::prevents,
                 fmt::format("there is no NVIDIA driver, so {} cannot use a GPU", answer_.subject),
                 {"no driver is loaded"},
                 driver.empty() ? "install NVIDIA's driver"
                                : fmt::format("install NVIDIA's driver {}", driver),
                 {"CUDA driver version is insufficient for CUDA runtime version",
                  torch() ? "Found no NVIDIA driver on your system" : "failed call to cuInit"}};
  }
  const Verdict serves = driver_verdict();
  if (!serves.no()) return std::nullopt;
  return Cause{"driver-too-old",
               Severity::prevents,
               fmt::format("driver {} is too old for {}, which was built with CUDA {}",
                           driver_text(),
                           answer_.subject,
                           answer_.build->cuda.text()),
               evidence_of(serves),
               fmt::format("update NVIDIA's driver to {}", driver),
               {"CUDA driver version is insufficient for CUDA runtime version"}};
}

std::optional<Cause> Question::library_cause() const {
  if (answer_.missing.empty()) return std::nullopt;
  const BuildRow& build = *answer_.build;
  const std::string& name = answer_.missing.front();
  Cause cause{"framework-library-missing",
              Severity::prevents,
              fmt::format("{} opens {}, which is not there, and so {}",
                          answer_.subject,
                          name,
                          missing_is_silent_ ? "computes on the CPU without an error"
                                             : "cannot be imported"),
              {},
              "",
              {}};
  if (answer_.missing.size() > 1) {
    cause.evidence.push_back(fmt::format("missing: {}", fmt::join(answer_.missing, ", ")));
  }
  for (const Version& toolkit : setup_.toolkits) {
    const std::string library = name.substr(3, name.find(".so") - 3);
    if (const auto other = soname_in_toolkit(toolkit, library)) {
      cause.evidence.push_back(fmt::format("CUDA {} has {}", toolkit.text(), *other));
    }
  }
  const bool cudnn = name.starts_with("libcudnn");
  const std::string what =
      cudnn ? fmt::format("cuDNN {} (for CUDA {})", build.cudnn->text(), build.cuda.text())
            : fmt::format("CUDA {} beside the other toolkits", build.cuda.text());
  cause.remedy = fmt::format("install {} and put its folder into LD_LIBRARY_PATH", what);
  if (!build.extra.empty()) {
    cause.remedy +=
        fmt::format(", or: pip install 'tensorflow[{}]=={}'", build.extra, version_->text());
  }
  cause.symptoms = {
      missing_is_silent_
          ? fmt::format("Could not load dynamic library '{}'", name)
          : fmt::format(
                "ImportError: {}: cannot open shared object file: No such file or directory",
                name)};
  if (missing_is_silent_) cause.symptoms.emplace_back("Skipping registering GPU devices...");
  return cause;
}

std::optional<Cause> Question::cudnn_cause() const {
  const Verdict serves = cudnn_verdict();
  if (!serves.no()) return std::nullopt;
  const Version& compiled = *answer_.build->cudnn;
  return Cause{
      "framework-cudnn-mismatch",
      Severity::prevents,
      fmt::format("{} was built with cuDNN {} and does not accept {}: its convolutions fail",
                  answer_.subject,
                  compiled.text(),
                  setup_.cudnn->text()),
      evidence_of(serves),
      fmt::format("install cuDNN {} or a newer {}.x for CUDA {}",
                  compiled.text(),
                  compiled.major(),
                  answer_.build->cuda.text()),
      {fmt::format("Loaded runtime CuDNN library: {} but source was compiled with: {}",
                   setup_.cudnn->text(),
                   compiled.prefix(3))}};
}

void Question::cudnn_without_code(const GpuAnswer& out) {
  const BuildRow& build = *answer_.build;
  const auto& cudnn = uses_system_libraries() && setup_.cudnn ? setup_.cudnn : build.cudnn;
  if (!cudnn) return;
  const Version cuda =
      uses_system_libraries() && !setup_.toolkits.empty() ? setup_.toolkits.front() : build.cuda;
  const Verdict knows = cudnn_knows_gpu(*cudnn, cuda, *out.gpu.capability);
  if (!knows.no()) return;
  const auto& better = out.newest.front().with_cudnn;
  const Verdict certain =
      out.newest.front().certain ? out.newest.front().certain->cudnn_knows_gpu : Verdict{};
  std::string remedy = better
                           ? fmt::format("for convolutions use {}, whose cuDNN {} has code for it",
                                         better->text(),
                                         better->cudnn->text())
                       : certain.yes() ? fmt::format("use {}", newest_text(out))
                       : torch()       ? "do without cuDNN: torch.backends.cudnn.enabled = False"
                                       : fmt::format("use {}", newest_text(out));
  add_gpu_finding(out,
                  {"cudnn-has-no-code-for-gpu",
                   Severity::distorts,
                   fmt::format("cuDNN {}, which {} uses, has no code for {}: matrix products work, "
                               "convolutions may fail",
                               cudnn->text(),
                               answer_.subject,
                               name_and_capability(out.gpu)),
                   evidence_of(knows),
                   std::move(remedy),
                   {"CUDNN_STATUS_ARCH_MISMATCH", "CUDNN_STATUS_NOT_SUPPORTED"}});
}

std::string Question::remedy_for(const GpuAnswer& out) const {
  // The same version for another CUDA is the smallest change.
  if (answer_.build && version_ && torch()) {
    Requirement any = requirement_;
    any.cuda.reset();
    for (const BuildRow* row : builds_for(any, *version_)) {
      const auto need = driver_needed_by(row->cuda);
      const bool driver_fits = setup_.driver
                                   ? driver_serves_toolkit(*setup_.driver, row->cuda).yes()
                                   : !out.last_driver_branch ||
                                         (need && need->minimum.major() <= *out.last_driver_branch);
      if (row->package == "wheel" && driver_fits &&
          code_runs(row->code, row->cuda, *out.gpu.capability).verdict.yes()) {
        return fmt::format("use the build of the same version for CUDA {}: torch=={}{}",
                           row->cuda.text(),
                           version_->text(),
                           tag_of(row->cuda));
      }
    }
  }
  const std::string newest = newest_text(out);
  return newest.empty() ? "use a newer version"
                        : "use " + newest + ", the newest in the tables that works on this GPU";
}

void Question::no_code(GpuAnswer& out, const Verdict& verdict) {
  ++hopeless_gpus_;
  out.outcome = torch() ? Outcome::fails : Outcome::silent_cpu;
  out.reason = verdict.reason;
  Cause cause{"framework-has-no-code-for-gpu",
              Severity::prevents,
              fmt::format("{} has no code for {}: {}",
                          answer_.subject,
                          name_and_capability(out.gpu),
                          torch() ? "work on it ends with an error"
                                  : "it is ignored, and work is done on the CPU without an error"),
              evidence_of(verdict),
              remedy_for(out),
              {}};
  if (answer_.build && verdict.source.empty()) {
    cause.evidence.push_back("source: " + answer_.build->source.text);
  }
  if (torch()) {
    cause.symptoms = {"no kernel image is available for execution on the device",
                      "is not compatible with the current PyTorch installation"};
  } else {
    cause.symptoms = {"Ignoring visible gpu device", "The minimum required Cuda capability is"};
  }
  add_gpu_finding(out, cause);
}

/// A driver that is older than the first toolkit with the GPU.
void Question::driver_before_gpu(GpuAnswer& out, const Verdict& verdict) {
  out.reason = verdict.reason;
  const std::string first = first_driver_of(*out.gpu.capability)->text();
  add_gpu_finding(out,
                  {"driver-too-old",
                   Severity::prevents,
                   fmt::format("driver {} is older than {}, the oldest that a table has for {}",
                               setup_.driver->text(),
                               first,
                               name_and_capability(out.gpu)),
                   evidence_of(verdict),
                   fmt::format("update NVIDIA's driver to {} or newer", first),
                   {}});
}

void Question::dropped(GpuAnswer& out, const Verdict& verdict) {
  ++hopeless_gpus_;
  out.outcome = torch() ? Outcome::fails : Outcome::silent_cpu;
  out.reason = verdict.reason;
  std::string remedy = fmt::format("install a driver of branch R{}", *out.last_driver_branch);
  if (const std::string newest = newest_text(out); !newest.empty()) {
    remedy += fmt::format("; the newest that works with it is {}", newest);
  }
  add_gpu_finding(out,
                  {"architecture-dropped-by-driver",
                   Severity::prevents,
                   fmt::format("driver {} no longer knows {} ({}), so no program sees it",
                               setup_.driver->text(),
                               name_and_capability(out.gpu),
                               out.architecture),
                   evidence_of(verdict),
                   std::move(remedy),
                   {"No devices were found"}});
}

void Question::add_gpu_finding(const GpuAnswer& out, const Cause& cause) {
  answer_.findings.push_back(
      finding(cause, out.gpu.id.empty() ? name_and_capability(out.gpu) : out.gpu.id));
}

/// One for the framework itself, unless what the GPUs lack makes it beside the point.
void Question::add_framework_finding() {
  if (cpu_only_) {
    const std::string remedy = torch() ? "install a build with CUDA, for example torch==2.8+cu126"
                               : version_ && *version_ < *Version::parse("2.1")
                                   ? "install tensorflow-gpu of the same version"
                                   : "install tensorflow";
    answer_.findings.push_back(
        finding({"framework-cpu-only",
                 Severity::prevents,
                 fmt::format("{} is a build without CUDA: it computes on the CPU", answer_.subject),
                 {},
                 remedy,
                 {torch() ? "Torch not compiled with CUDA enabled" : "Could not find any GPUs"}},
                answer_.subject));
    return;
  }
  if (setup_.gpus_known && setup_.gpus.empty()) {
    answer_.findings.push_back(finding(
        {"no-gpu",
         Severity::note,
         fmt::format("this machine has no NVIDIA GPU, so {} computes on the CPU", answer_.subject),
         {"no PCI device of NVIDIA that computes"},
         "use a machine with an NVIDIA GPU, or ask about one: --gpu A100",
         {torch() ? "torch.cuda.is_available() is False" : "Could not find any GPUs"}},
        "machine"));
    return;
  }
  const bool hopeless = !setup_.gpus.empty() && hopeless_gpus_ == setup_.gpus.size();
  std::optional<Cause> cause;
  if (!hopeless) cause = driver_cause();
  if (!cause && !hopeless) cause = library_cause();
  if (!cause && !hopeless) cause = cudnn_cause();
  if (!cause) cause = unknown_version_;
  if (!cause) return;
  const bool first = cause->severity == Severity::prevents;
  answer_.findings.insert(first ? answer_.findings.begin() : answer_.findings.end(),
                          finding(*cause, answer_.subject));
}

}  // namespace launchgap::doctor
