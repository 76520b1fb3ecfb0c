// What is wrong with the libraries that programs would load: too new for the driver, mixed,
// doubled, broken, without code for the GPU.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/shared_library.h"
#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/rules/rules.h"

namespace launchgap::doctor {
namespace {

namespace fs = std::filesystem;

std::string file_line(const LibraryFacts& library) {
  return fmt::format("{} is {}{}{}",
                     library.soname,
                     library.path,
                     library.version.empty() ? "" : fmt::format(", version {}", library.version),
                     library.origin.empty() ? "" : fmt::format(" ({})", library.origin));
}

/// Of the runtime's own answers those that the driver's state does not explain by itself.
std::vector<Finding> diagnose_runtimes(const MachineFacts& facts) {
  std::vector<Finding> findings;
  Finding too_old = about("machine", "driver-too-old", Severity::prevents, "", {}, "");
  for (const LibraryFacts& runtime : facts.libraries) {
    if (runtime.kind != "cudart" || !runtime.call || runtime.call->code == 0) continue;
    // NVIDIA's runtime calls more than a driver of the tests has.
    if (facts.driver.simulated && !runtime.simulated) continue;
    const std::string answer =
        call_text("cudaGetDeviceCount", runtime.call->code, runtime.call->text);
    const auto version = Version::parse(runtime.version);
    const int driver_major = facts.driver.cuda_version.value_or(0) / 1000;
    if (runtime.call->code != 35) {
      Finding finding = finding_of_code(
          facts, nullptr, "cudaGetDeviceCount", runtime.call->code, runtime.call->text);
      finding.evidence.push_back(file_line(runtime));
      findings.push_back(finding);
    } else if (version && version->major() <= driver_major && !facts.driver.others.empty()) {
      findings.push_back(about(
          "machine",
          "driver-library-shadowed",
          Severity::prevents,
          fmt::format("CUDA {} says that the driver is too old, but minor-version compatibility "
                      "covers it: another libcuda is in the way.",
                      version->prefix(2)),
          {answer, driver_file(facts), "another one is " + facts.driver.others.front()},
          "take one of the two out of the loader's way (LD_LIBRARY_PATH, /etc/ld.so.conf.d)"));
    } else {
      too_old.evidence.push_back(file_line(runtime));
      too_old.evidence.push_back(answer);
      too_old.sentence =
          fmt::format("The driver serves CUDA {}, and {} needs {}.",
                      facts.driver.cuda_version
                          ? Version::parse(fmt::format("{}.{}",
                                                       *facts.driver.cuda_version / 1000,
                                                       *facts.driver.cuda_version % 1000 / 10))
                                ->text()
                          : "of an unknown version",
                      runtime.soname,
                      version ? version->prefix(2) : "a newer one");
      const auto need = version ? driver_needed_by(*version) : std::nullopt;
      too_old.remedy = fmt::format(
          "install {}, or programs that were built for CUDA {}; nvidia-smi shows the driver's "
          "highest CUDA version, not the installed one",
          need ? fmt::format("a driver of {} or newer", need->minimum.text()) : "a newer driver",
          driver_major);
    }
  }
  // With another runtime beside it that works, one that does not is only in the way.
  const bool another_works = std::ranges::any_of(facts.libraries, [](const LibraryFacts& other) {
    return other.kind == "cudart" && other.call && other.call->code == 0;
  });
  if (another_works) {
    too_old.severity = Severity::note;
    for (Finding& finding : findings) finding.severity = Severity::note;
  }
  if (!too_old.sentence.empty()) {
    too_old.evidence.push_back(kernel_driver(facts));
    findings.push_back(too_old);
  }
  return findings;
}

std::optional<Finding> diagnose_file(const LibraryFacts& library) {
  // A library that is loaded works; that reading more of it took too long is no fault.
  if (library.hung && !library.path.empty()) return std::nullopt;
  const bool missing = library.error.find(library.soname + ": cannot open") != std::string::npos;
  if (library.died.empty() && (library.error.empty() || missing)) return std::nullopt;
  const Severity severity = library.hung || library.kind == "nccl" ? Severity::note
                            : library.kind == "cupti"              ? Severity::distorts
                                                                   : Severity::prevents;
  return about(
      library.soname,
      "library-broken",
      severity,
      library.hung ? fmt::format("{} was not loaded in time: it hangs, or its file system is slow.",
                                 library.soname)
                   : fmt::format("{} cannot be used.", library.soname),
      {library.died.empty() ? library.error : library.died,
       library.path.empty() ? "" : file_line(library)},
      fmt::format(
          "install it again, or take it out of the loader's way{}",
          library.others.empty() ? "" : fmt::format("; then {} is taken", library.others.front())));
}

/// The version in a file's name: "9.1.0" of libcudnn_ops.so.9.1.0.
std::string version_of_file(const std::string& path) {
  const std::size_t at = path.rfind(".so.");
  return at == std::string::npos ? "" : path.substr(at + 4);
}

std::optional<Finding> diagnose_parts(const LibraryFacts& cudnn) {
  std::set<std::string> folders, versions;
  for (const std::string& file : cudnn.files) {
    folders.insert(fs::path(file).parent_path());
    const std::string version = version_of_file(file);
    if (std::ranges::count(version, '.') >= 1) versions.insert(version);
  }
  if (cudnn.checks.empty() && folders.size() < 2 && versions.size() < 2) return std::nullopt;
  std::vector<std::string> evidence = {file_line(cudnn)};
  for (const CallResult& check : cudnn.checks)
    evidence.push_back(fmt::format("{} ({})", check.text, check.code));
  const bool mismatch = folders.size() > 1 || versions.size() > 1 ||
                        std::ranges::any_of(cudnn.checks, [](const CallResult& check) {
                          return check.text.find("VERSION_MISMATCH") != std::string::npos;
                        });
  for (const std::string& file : cudnn.files) evidence.push_back("loaded: " + file);
  if (!mismatch) {
    return about(cudnn.soname,
                 "cudnn-prerequisite-missing",
                 Severity::prevents,
                 "A part of cuDNN cannot be loaded.",
                 evidence,
                 "install all parts of this cuDNN, and cuBLAS and NVRTC of its CUDA, where the "
                 "loader finds them");
  }
  return about(cudnn.soname,
               "cudnn-mixed-versions",
               Severity::prevents,
               "The loader takes parts of cuDNN from different versions or folders.",
               evidence,
               "leave one cuDNN in the loader's way: LD_LIBRARY_PATH, the system's packages and "
               "pip's wheels each can bring one");
}

/// Whether one of these targets serves a GPU; "9.0a" serves 9.0 alone, and of a family ("10.0f")
/// the rest is taken to be served too.
bool any_serves(const std::vector<std::string>& targets, CodeImage::Encoding kind, int capability) {
  return std::ranges::any_of(targets, [&](const std::string& text) {
    auto image = CodeImage::parse(text);
    if (!image) return true;  // unknown is no reason to accuse
    image->kind = kind;
    return !image_runs(*image, {capability / 10, capability % 10}).no();
  });
}

/// Whether a library has code that a GPU can run; unknown where it was not read to the end.
Truth has_code(const LibraryFacts& library, int capability) {
  if (any_serves(library.machine_code, CodeImage::Encoding::machine_code, capability) ||
      any_serves(library.ptx, CodeImage::Encoding::ptx, capability))
    return Truth::yes;
  const bool read = !library.machine_code.empty() || !library.ptx.empty();
  return read && library.code_incomplete.empty() ? Truth::no : Truth::unknown;
}

/// By what is in the files. Of several cuBLAS or cuDNN one is enough.
std::vector<Finding> diagnose_code(const MachineFacts& facts) {
  std::vector<Finding> findings;
  for (const char* kind : {"cublas", "cudnn"}) {
    for (const JoinedGpu& gpu : facts.gpus) {
      if (!gpu.capability || gpu.hidden || gpu.proof) continue;
      std::vector<std::string> evidence;
      bool enough = false;
      for (const LibraryFacts& library : facts.libraries) {
        if (library.kind != kind || library.path.empty()) continue;
        enough = enough || has_code(library, *gpu.capability) != Truth::no;
        evidence.push_back(fmt::format(
            "{}: machine code for {}{}",
            file_line(library),
            fmt::join(library.machine_code, ", "),
            library.ptx.empty() ? "" : fmt::format("; PTX for {}", fmt::join(library.ptx, ", "))));
      }
      if (enough || evidence.empty()) continue;
      const bool cudnn = std::string(kind) == "cudnn";
      evidence.push_back(fmt::format(
          "the GPU's compute capability is {}.{}", *gpu.capability / 10, *gpu.capability % 10));
      findings.push_back(about(
          gpu.subject(),
          cudnn ? "cudnn-has-no-code-for-gpu" : "cublas-has-no-code-for-gpu",
          Severity::prevents,
          fmt::format("The loader takes a {} without code for this GPU.",
                      cudnn ? "cuDNN" : "cuBLAS"),
          evidence,
          fmt::format("install the one of a CUDA that still has it: `launchgap doctor --gpu {}.{}`",
                      *gpu.capability / 10,
                      *gpu.capability % 10)));
    }
  }
  return findings;
}

std::optional<Finding> diagnose_copies(const MachineFacts& facts) {
  std::vector<std::string> evidence, names;
  for (const LibraryFacts& library : facts.libraries) {
    if (library.others.empty() || library.path.empty()) continue;
    names.push_back(library.soname);
    evidence.push_back(file_line(library));
    for (const std::string& other : library.others) evidence.push_back("and not " + other);
  }
  if (names.empty()) return std::nullopt;
  return about("machine",
               "duplicate-library",
               Severity::note,
               fmt::format("There are several files by the name of {}: the loader takes the first.",
                           fmt::join(names, ", ")),
               evidence,
               "leave one of each in the loader's way, if the wrong one is taken");
}

std::optional<Finding> diagnose_toolkits(const MachineFacts& facts) {
  std::set<std::string> places;
  std::vector<std::string> evidence;
  for (const Toolkit& toolkit : facts.machine.toolkits) {
    // /usr/local/cuda is a default that nothing need follow.
    if (toolkit.pointed_by.starts_with("/")) continue;
    places.insert(toolkit.path);
    evidence.push_back(fmt::format("{}: {}{}",
                                   toolkit.pointed_by,
                                   toolkit.path,
                                   toolkit.version ? fmt::format(" ({})", toolkit.version->text())
                                                   : " (no toolkit that can be read)"));
  }
  if (places.size() < 2) return std::nullopt;
  return about("machine",
               "toolkits-differ",
               Severity::note,
               "CUDA_HOME, CUDA_PATH and the nvcc of PATH belong to different toolkits: one "
               "compiles programs, another is linked.",
               evidence,
               "let all of them point to one toolkit");
}

/// The compiler of a toolkit that has dropped a GPU's architecture, or does not know it yet.
std::vector<Finding> diagnose_compilers(const MachineFacts& facts) {
  std::vector<Finding> findings;
  std::set<std::string> told;
  for (const JoinedGpu& gpu : facts.gpus) {
    if (!gpu.capability || gpu.hidden) continue;
    for (const Toolkit& toolkit : facts.machine.toolkits) {
      if (!toolkit.version) continue;
      const Capability capability{*gpu.capability / 10, *gpu.capability % 10};
      const Verdict verdict = toolkit_knows_gpu(*toolkit.version, capability);
      if (!verdict.no() || !told.insert(gpu.subject() + toolkit.path).second) continue;
      findings.push_back(about(
          gpu.subject(),
          "toolkit-has-no-code-for-gpu",
          Severity::note,
          fmt::format(
              "CUDA {} at {} cannot compile for this GPU, and its libraries have no code for it.",
              toolkit.version->prefix(2),
              toolkit.path),
          {fmt::format("{} ({})", verdict.reason, verdict.source)},
          fmt::format("use a toolkit that still has it: `launchgap doctor --gpu {}` says which is "
                      "the newest",
                      capability.text())));
    }
  }
  return findings;
}

std::optional<Finding> diagnose_compatibility_library(const MachineFacts& facts) {
  if (facts.driver.path.find("/compat/") == std::string::npos) return std::nullopt;
  return about("machine",
               "compat-in-use",
               Severity::note,
               "libcuda is from cuda-compat: a newer CUDA runs on an older kernel driver.",
               {driver_file(facts), kernel_driver(facts)},
               "nothing, if that is meant; the driver's own features stay those of the older one");
}

std::optional<Finding> diagnose_nvml(const MachineFacts& facts) {
  const NvmlFacts& nvml = facts.nvml;
  if (!nvml.asked || (!nvml.path.empty() && !nvml.failed && nvml.died.empty())) return std::nullopt;
  if (nvml.failed && nvml.failed->code == 18) {
    return about(
        "libnvidia-ml.so.1",
        "nvml-mismatch",
        Severity::note,
        "NVML is of another version than the kernel's driver (\"Driver/library version "
        "mismatch\"), so launchgap cannot see clocks, heat and neighbours; CUDA works.",
        {call_text("nvmlInit", nvml.failed->code, nvml.failed->text), kernel_driver(facts)},
        "take the other libnvidia-ml.so.1 out of the loader's way, or install the driver's");
  }
  const std::string why = nvml.failed ? call_text("NVML", nvml.failed->code, nvml.failed->text)
                          : nvml.died.empty() ? nvml.error
                                              : nvml.died;
  return about("libnvidia-ml.so.1",
               "nvml-unavailable",
               Severity::note,
               "NVML does not work, so launchgap cannot see clocks, heat, errors and neighbours.",
               {why},
               "install the library of the driver's own version; in a container, capability "
               "utility brings it");
}

/// Whether one condition of NVIDIA_REQUIRE_CUDA holds, "cuda>=12.8" or "driver<536"; what is not
/// known, such as a brand, is taken to hold.
bool condition_holds(const MachineFacts& facts, std::string_view condition) {
  static constexpr std::string_view kOperators[] = {">=", "<=", "!=", "=", ">", "<"};
  for (const std::string_view op : kOperators) {
    const std::size_t at = condition.find(op);
    if (at == condition.npos) continue;
    const std::string_view name = condition.substr(0, at);
    const auto wanted = Version::parse(condition.substr(at + op.size()));
    const auto have = name == "cuda" ? Version::parse(cuda_version_text(*facts.driver.cuda_version))
                      : name == "driver" ? facts.machine.module_version
                                         : std::nullopt;
    if (!wanted || !have) return true;
    const auto order = *have <=> *wanted;
    return op == ">="   ? order >= 0
           : op == "<=" ? order <= 0
           : op == "!=" ? order != 0
           : op == "="  ? order == 0
           : op == ">"  ? order > 0
                        : order < 0;
  }
  return true;
}

/// An image's own demand, which NVIDIA's container runtime checks when it starts: alternatives
/// are separated by blanks, conditions of one by commas.
std::optional<Finding> diagnose_requirement(const MachineFacts& facts) {
  const auto demand = facts.machine.environment.find("NVIDIA_REQUIRE_CUDA");
  if (demand == facts.machine.environment.end() || !facts.driver.cuda_version) return std::nullopt;
  const std::vector<std::string_view> alternatives = parts_of(demand->second, " ");
  const bool met = std::ranges::any_of(alternatives, [&](std::string_view alternative) {
    return std::ranges::all_of(parts_of(alternative, ","), [&](std::string_view condition) {
      return condition_holds(facts, condition);
    });
  });
  if (met || alternatives.empty()) return std::nullopt;
  return about(
      "machine",
      "container-requirement",
      Severity::note,
      fmt::format("The image wants another driver; this one serves CUDA {}.",
                  cuda_version_text(*facts.driver.cuda_version)),
      {fmt::format("NVIDIA_REQUIRE_CUDA is '{}'", printable(demand->second)), kernel_driver(facts)},
      "take an image for the driver's CUDA, or a newer driver; NVIDIA_DISABLE_REQUIRE only "
      "silences the check (\"unsatisfied condition\")");
}

}  // namespace

std::vector<Finding> diagnose_libraries(const MachineFacts& facts, bool driver_works) {
  std::vector<Finding> findings;
  const auto add = [&](std::optional<Finding> finding) {
    if (finding) findings.push_back(*std::move(finding));
  };
  for (const LibraryFacts& library : facts.libraries) {
    // Many of them load libcuda, and go with it.
    if (facts.driver.died.empty()) add(diagnose_file(library));
    if (library.kind == "cudnn" && library.died.empty()) add(diagnose_parts(library));
  }
  add(diagnose_copies(facts));
  add(diagnose_toolkits(facts));
  if (!driver_works) return findings;
  for (Finding& finding : diagnose_runtimes(facts)) findings.push_back(std::move(finding));
  for (Finding& finding : diagnose_code(facts)) findings.push_back(std::move(finding));
  for (Finding& finding : diagnose_compilers(facts)) findings.push_back(std::move(finding));
  add(diagnose_compatibility_library(facts));
  add(diagnose_nvml(facts));
  add(diagnose_requirement(facts));
  return findings;
}

}  // namespace launchgap::doctor
