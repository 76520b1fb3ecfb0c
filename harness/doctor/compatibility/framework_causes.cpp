// Why a build does not use the GPU: the causes that are findings. Those of the driver are in
// driver_causes.cpp.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/doctor/compatibility/framework_question.h"

namespace launchgap::doctor {

std::vector<std::string> evidence_of(const Verdict& verdict) {
  std::vector<std::string> evidence = {verdict.reason};
  if (!verdict.source.empty()) {
    evidence.push_back(fmt::format(
        "{}: {}", verdict.recalled ? "by a row that was not confirmed" : "source", verdict.source));
  }
  return evidence;
}

std::string name_and_capability(const InstalledGpu& gpu) {
  const std::string name = printable(gpu.name.empty() ? "GPU" : gpu.name, 80);
  return gpu.capability ? fmt::format("{} ({})", name, gpu.capability->text()) : name;
}

Finding finding_of(const Cause& cause, std::string subject) {
  std::string sentence = cause.sentence;
  // Names are written as they are: "tensorflow 2.4.0", "cuDNN 8.0".
  for (const char* word : {"there ", "this ", "driver ", "no ", "a "}) {
    if (sentence.starts_with(word)) sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  }
  if (!sentence.ends_with('.')) sentence += '.';
  return {cause.code,
          cause.severity,
          std::move(subject),
          std::move(sentence),
          in_words(cause.evidence),
          cause.remedy,
          in_words(cause.symptoms)};
}

namespace {

/// The newest version that works, as a remedy; empty if there is none.
std::string newest_text(const GpuAnswer& gpu) {
  const Newest& newest = gpu.newest.front();
  const auto& build = newest.certain ? newest.certain : newest.possible;
  if (!build) return "";
  return fmt::format(
      "{} ({}, the newest in the tables that works on this GPU{}; it needs a driver {})",
      build->command(),
      build->text(),
      newest.certain ? "" : ", by a row that was not confirmed",
      need_text(build->driver, gpu.last_driver_branch));
}

}  // namespace

std::string FrameworkQuestion::pin() const {
  if (requirement_.pinned() || installed_) return version_->text();
  return version_->parts().size() < 3 ? version_->text() + ".*" : version_->text();
}

std::optional<Cause> FrameworkQuestion::library_cause() const {
  if (answer_.missing.empty()) return std::nullopt;
  const BuildRow& build = *answer_.build;
  const std::string& name = answer_.missing.front();
  Cause cause{"framework-library-missing",
              Severity::prevents,
              fmt::format("{0} {2}: it does not find {1}",
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
  for (const Version& toolkit : installation_.toolkits) {
    const std::string library = name.substr(3, name.find(".so") - 3);
    if (const auto other = soname_in_toolkit(toolkit, library)) {
      cause.evidence.push_back(fmt::format("CUDA {} has {}", toolkit.text(), *other));
    }
  }
  const std::string folder = fmt::format("/usr/local/cuda-{}/lib64", build.cuda.prefix(2));
  const std::string what =
      name.starts_with("libcudnn")
          ? fmt::format("cuDNN {} for CUDA {}", build.cudnn->text(), build.cuda.text())
          : fmt::format("CUDA {} beside the other toolkits", build.cuda.text());
  cause.remedy =
      fmt::format("install {}, then: export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", what, folder);
  if (!build.extra.empty()) {
    cause.remedy += fmt::format(", or: pip install 'tensorflow[{}]=={}'", build.extra, pin());
  }
  const std::string error =
      fmt::format("{}: cannot open shared object file: No such file or directory", name);
  if (!missing_is_silent_) {
    cause.symptoms = {"Python: ImportError: " + error};
    return cause;
  }
  // Later ones name no library.
  if (*version_ < *Version::parse("2.12")) {
    cause.symptoms.push_back(
        fmt::format("TensorFlow: Could not load dynamic library '{}'; dlerror: {}", name, error));
  }
  cause.symptoms.emplace_back(
      "TensorFlow: Cannot dlopen some GPU libraries. … Skipping registering GPU devices...");
  return cause;
}

std::optional<Cause> FrameworkQuestion::cudnn_cause() const {
  const Verdict serves = cudnn_verdict();
  if (!serves.no()) return std::nullopt;
  const Version& compiled = *answer_.build->cudnn;
  return Cause{
      "framework-cudnn-mismatch",
      Severity::prevents,
      fmt::format("{} was built with cuDNN {} and does not accept {}: its convolutions fail",
                  answer_.subject,
                  compiled.text(),
                  installation_.cudnn->text()),
      evidence_of(serves),
      fmt::format("install cuDNN {} or a newer {}.x for CUDA {}",
                  compiled.text(),
                  compiled.major(),
                  answer_.build->cuda.text()),
      {fmt::format(
          "TensorFlow: Loaded runtime CuDNN library: {} but source was compiled with: {}. …",
          installation_.cudnn->text(),
          compiled.prefix(3))}};
}

void FrameworkQuestion::cudnn_without_code(const GpuAnswer& out) {
  const BuildRow& build = *answer_.build;
  const auto& cudnn =
      uses_system_libraries() && installation_.cudnn ? installation_.cudnn : build.cudnn;
  if (!cudnn) return;
  const Version cuda = uses_system_libraries() && !installation_.toolkits.empty()
                           ? installation_.toolkits.front()
                           : build.cuda;
  const Verdict knows = cudnn_knows_gpu(*cudnn, cuda, *out.gpu.capability);
  if (!knows.no()) return;
  const auto& better = out.newest.front().with_cudnn;
  const Verdict certain =
      out.newest.front().certain ? out.newest.front().certain->cudnn_knows_gpu : Verdict{};
  std::string remedy =
      better ? fmt::format("for convolutions: {} ({}, whose cuDNN {} has code for it)",
                           better->command(),
                           better->text(),
                           better->cudnn->text())
      : certain.yes() || !torch() ? newest_text(out)
                                  : "do without cuDNN: torch.backends.cudnn.enabled = False";
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
                   {cudnn->major() < 9 ? "cuDNN: CUDNN_STATUS_ARCH_MISMATCH"
                                       : "cuDNN: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"}});
}

std::string FrameworkQuestion::remedy_for(const GpuAnswer& out) const {
  // The same version for another CUDA is the smallest change.
  if (answer_.build && version_ && torch()) {
    Requirement any = requirement_;
    any.cuda.reset();
    for (const BuildRow* row : builds_for(any, *version_)) {
      const auto need = driver_needed_by(row->cuda);
      const bool driver_fits = installation_.driver
                                   ? driver_serves_toolkit(*installation_.driver, row->cuda).yes()
                                   : !out.last_driver_branch ||
                                         (need && need->minimum.major() <= *out.last_driver_branch);
      if (row->package == "wheel" && driver_fits &&
          code_runs(row->code, row->cuda, *out.gpu.capability).verdict.yes()) {
        const bool without_cudnn =
            row->cudnn && cudnn_knows_gpu(*row->cudnn, row->cuda, *out.gpu.capability).no();
        const auto& better = out.newest.front().with_cudnn;
        return fmt::format("{} (the same version, built for CUDA {}{}{})",
                           replace_command(*row, *version_),
                           row->cuda.text(),
                           without_cudnn ? ", without convolutions by cuDNN" : "",
                           without_cudnn && better ? fmt::format("; for those torch=={}{}",
                                                                 better->version.text(),
                                                                 tag_of(better->cuda))
                                                   : "");
      }
    }
  }
  const std::string newest = newest_text(out);
  return newest.empty() ? "use a newer version" : newest;
}

void FrameworkQuestion::no_code(GpuAnswer& out, const Verdict& verdict) {
  ++hopeless_gpus_;
  out.outcome = torch() ? Outcome::fails : Outcome::silent_cpu;
  out.reason = verdict.reason;
  out.brief = fmt::format("no code for {}", out.gpu.capability->text());
  Cause cause{
      "framework-has-no-code-for-gpu",
      Severity::prevents,
      fmt::format("{} has no code for {}: {}",
                  answer_.subject,
                  name_and_capability(out.gpu),
                  torch() ? "work on it ends with an error"
                          : "the GPU is ignored, and work is done on the CPU without an error"),
      evidence_of(verdict),
      remedy_for(out),
      {}};
  if (answer_.build && verdict.source.empty()) {
    cause.evidence.push_back("source: " + answer_.build->source.text);
  }
  if (torch()) {
    cause.symptoms = {
        "PyTorch: CUDA error: no kernel image is available for execution on the device",
        fmt::format("PyTorch: … with CUDA capability sm_{}{} is not compatible with the current "
                    "PyTorch installation.",
                    out.gpu.capability->major,
                    out.gpu.capability->minor)};
  } else {
    cause.symptoms = {
        fmt::format("TensorFlow: Ignoring visible gpu device … with Cuda compute capability {}. "
                    "The minimum required Cuda capability is …",
                    out.gpu.capability->text())};
  }
  add_gpu_finding(out, cause);
}

void FrameworkQuestion::add_gpu_finding(const GpuAnswer& out, const Cause& cause) {
  answer_.findings.push_back(
      finding_of(cause, out.gpu.id.empty() ? name_and_capability(out.gpu) : out.gpu.id));
}

Cause FrameworkQuestion::cpu_only_cause() const {
  // The same version with CUDA, as pip would take it.
  Requirement with_cuda = requirement_;
  with_cuda.cpu_only = false;
  const auto rows = version_ ? builds_for(with_cuda, *version_) : std::vector<const BuildRow*>{};
  const std::string install = !rows.empty() ? install_command(*rows.front(), *version_, pin())
                              : torch()     ? "pip install torch"
                                            : "pip install tensorflow";
  return {"framework-cpu-only",
          Severity::prevents,
          fmt::format("{} is a build without CUDA: it computes on the CPU", answer_.subject),
          {},
          fmt::format("pip uninstall {} && {}",
                      requirement_.package == "pytorch" ? "torch" : requirement_.package,
                      install),
          {torch() ? "PyTorch: AssertionError: Torch not compiled with CUDA enabled"
                   : "TensorFlow: tf.test.is_built_with_cuda() is False"}};
}

/// Of the package that was asked for, where the answer is for another one. What that other one
/// lacks comes first: it would not work either.
void FrameworkQuestion::add_package_finding() {
  if (other_package_.empty()) return;
  const bool other_fails = std::ranges::any_of(answer_.findings, [](const Finding& finding) {
    return finding.severity == Severity::prevents;
  });
  if (other_fails) return;
  answer_.findings.insert(
      answer_.findings.begin(),
      finding_of({"framework-cpu-only",
                  Severity::prevents,
                  fmt::format("{} computes on the CPU: pip's tensorflow of that version has no GPU "
                              "code, tensorflow-gpu has",
                              other_package_),
                  {},
                  fmt::format("pip uninstall tensorflow && pip install tensorflow-gpu=={}",
                              version_->text()),
                  {"TensorFlow: tf.test.is_built_with_cuda() is False"}},
                 other_package_));
}

/// One for the framework itself, unless what the GPUs lack makes it beside the point.
void FrameworkQuestion::add_framework_finding() {
  const auto add = [&](const Cause& cause) {
    const bool first = cause.severity == Severity::prevents;
    answer_.findings.insert(first ? answer_.findings.begin() : answer_.findings.end(),
                            finding_of(cause, answer_.subject));
  };
  if (cpu_only_) return add(cpu_only_cause());
  if (installation_.gpus_known && installation_.gpus.empty()) {
    if (unknown_version_) add(*unknown_version_);
    answer_.findings.push_back(finding_of(
        {"no-gpu",
         Severity::note,
         fmt::format("this machine has no NVIDIA GPU, so {} computes on the CPU", answer_.subject),
         {"no PCI device of NVIDIA that computes"},
         "use a machine with an NVIDIA GPU, or ask about one: --gpu A100",
         {torch() ? "PyTorch: torch.cuda.is_available() is False"
                  : "TensorFlow: tf.config.list_physical_devices('GPU') is empty"}},
        "machine"));
    return;
  }
  const bool hopeless = !installation_.gpus.empty() && hopeless_gpus_ == installation_.gpus.size();
  std::optional<Cause> cause;
  if (!hopeless) cause = driver_cause();
  if (!cause && !hopeless) cause = library_cause();
  if (!cause && !hopeless) cause = cudnn_cause();
  if (!cause) cause = unknown_version_;
  if (cause) add(*cause);
}

}  // namespace launchgap::doctor
