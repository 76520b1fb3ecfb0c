#include "harness/doctor/program_verdict.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/doctor/elf_file.h"
#include "harness/doctor/printable.h"
#include "harness/doctor/version.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

/// Fewer looks than this say little: a context could have come and gone between them.
constexpr std::size_t kEnoughLooks = 2;

/// In the order in which they are needed: the first one that is missing is the cause.
constexpr std::array kNeeded = {"libcuda",
                                "libcudart",
                                "libcublas",
                                "libcublasLt",
                                "libcudnn",
                                "libcufft",
                                "libcurand",
                                "libcusolver",
                                "libcusparse",
                                "libnccl"};
/// Frameworks look whether they are there and do without.
constexpr std::array kOptional = {"libcupti",
                                  "libnvidia-ml",
                                  "libnvinfer",
                                  "libnvinfer_plugin",
                                  "libnvToolsExt",
                                  "libnvblas",
                                  "libcutensor",
                                  "libcufile",
                                  "libcudadebugger",
                                  "libnvshmem_host"};

std::size_t rank_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kNeeded, library_stem(name)) - kNeeded.begin());
}

bool is_taken(const LibrarySearch& search) {
  return !search.found.empty() && !search.unloaded;
}

/// Whether the process has this library, in whatever version.
bool has_library(const ProcessFacts& process, std::string_view stem) {
  return std::ranges::any_of(
             process.libraries,
             [&](const MappedLibrary& library) { return library_stem(library.path) == stem; }) ||
         std::ranges::any_of(process.searches, [&](const LibrarySearch& search) {
           return is_taken(search) && library_stem(search.wanted) == stem;
         });
}

struct Cause {
  const ProcessFacts* process = nullptr;
  const LibrarySearch* search = nullptr;
};

/// The missing library that explains the rest, if one does.
std::optional<Cause> missing_library(const ProgramFacts& facts) {
  std::optional<Cause> cause;
  for (const ProcessFacts& process : facts.processes) {
    for (const LibrarySearch& search : process.searches) {
      const std::string stem = library_stem(search.wanted);
      const bool optional =
          search.dlopened && std::ranges::find(kOptional, stem) != kOptional.end();
      if (!search.found.empty() || optional || has_library(process, stem)) continue;
      if (!cause || rank_of(search.wanted) < rank_of(cause->search->wanted))
        cause = Cause{&process, &search};
    }
  }
  return cause;
}

/// A CUDA library that a process took, and where it lies.
struct Taken {
  const ProcessFacts* process = nullptr;
  std::string name, path;
  PathOrigin origin;
};

std::vector<Taken> taken_libraries(const ProgramFacts& facts) {
  std::vector<Taken> all;
  std::set<std::string> seen;
  for (const ProcessFacts& process : facts.processes) {
    for (const LibrarySearch& search : process.searches) {
      if (!is_taken(search) || !is_cuda_library(search.wanted)) continue;
      std::error_code failed;
      const fs::path real = fs::canonical(search.found, failed);
      seen.insert(failed ? search.found : real.string());
      if (seen.insert(search.wanted + "\n" + search.found).second)
        all.push_back({&process,
                       search.wanted.substr(search.wanted.rfind('/') + 1),
                       search.found,
                       search.origin});
    }
    for (const MappedLibrary& library : process.libraries) {
      if (seen.insert(library.path).second)
        all.push_back({&process, library.name, library.path, library.origin});
    }
  }
  std::ranges::stable_sort(all, {}, [](const Taken& taken) { return rank_of(taken.name); });
  return all;
}

std::string variable(const ProcessFacts& process, const std::string& name) {
  const auto found = process.environment.find(name);
  return found == process.environment.end() ? "" : found->second;
}

/// "8.0.5" of "/opt/libcudnn.so.8" where that is a link to libcudnn.so.8.0.5.
std::optional<Version> version_of(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  const std::string name = (failed ? fs::path(path) : real).filename().string();
  const std::size_t at = name.find(".so.");
  return at == std::string::npos ? std::nullopt
                                 : Version::parse(std::string_view(name).substr(at + 4));
}

struct Shadow {
  Taken taken;
  std::optional<LibraryCopy> other;  // what would have been right; a stub may have no other
};

/// The library that was taken in place of a better one, if there is such a thing.
std::optional<Shadow> shadowed_library(const ProgramFacts& facts,
                                       const Surroundings& surroundings) {
  for (const Taken& taken : taken_libraries(facts)) {
    const bool driver = library_stem(taken.name) == "libcuda";
    std::vector<LibraryCopy> others = other_copies(driver ? "libcuda.so.1" : taken.name,
                                                   taken.path,
                                                   variable(*taken.process, "LD_LIBRARY_PATH"),
                                                   surroundings.cache,
                                                   surroundings.system);
    std::erase_if(others, [](const LibraryCopy& copy) { return is_stub(copy.path); });
    const std::optional<LibraryCopy> first =
        others.empty() ? std::nullopt : std::optional(others.front());
    if (driver && (is_stub(taken.path) || first)) return Shadow{taken, first};
    if (driver || !first) continue;
    const auto version = version_of(taken.path), other = version_of(first->path);
    if (version && other && *version < *other) return Shadow{taken, first};
  }
  return std::nullopt;
}

std::string subject_of(const ProgramFacts& facts) {
  return facts.command.empty() ? "the program" : facts.command;
}

std::string seen_as(const Taken& taken) {
  std::string text = fmt::format("{} is {}", printable(taken.name), printable(taken.path));
  if (taken.origin.kind != PathOrigin::Kind::unknown)
    text += fmt::format(" ({})", taken.origin.text());
  return text;
}

std::string joined(const std::set<std::string>& texts) {
  std::vector<std::string> shown;
  for (const std::string& text : texts) shown.push_back(printable(text));
  return fmt::format("{}", fmt::join(shown, ", "));
}

/// It ended with a failure of its own; what a user stopped did not.
bool failed(const ProgramFacts& facts) {
  if (facts.signal) {
    const int signal = *facts.signal;
    return signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGKILL;
  }
  const int code = facts.exit_code.value_or(0);
  return code != 0 && code != 128 + SIGINT && code != 128 + SIGTERM;
}

GpuUse without_gpu(const ProgramFacts& facts) {
  return failed(facts) ? GpuUse::on_cpu : GpuUse::on_cpu_silently;
}

void add_limitations(const ProgramFacts& facts, Finding& finding) {
  finding.evidence.insert(
      finding.evidence.end(), facts.limitations.begin(), facts.limitations.end());
}

Finding uses_gpu(const ProgramFacts& facts) {
  Finding finding{.code = "program-uses-gpu",
                  .severity = Severity::note,
                  .subject = subject_of(facts),
                  .sentence = "The program computes on the GPU: it created a context.",
                  .evidence = {},
                  .remedy = "Nothing is to be done.",
                  .symptoms = {}};
  std::size_t processes = 0;
  for (const ProcessFacts& process : facts.processes) {
    if (!process.had_context() || ++processes > 8) continue;
    finding.evidence.push_back(
        process.nodes_mapped.empty()
            ? fmt::format("process {} is listed by NVML as computing", process.pid)
            : fmt::format(
                  "process {} has {} in its memory", process.pid, joined(process.nodes_mapped)));
  }
  for (const Taken& taken : taken_libraries(facts)) {
    if (rank_of(taken.name) < kNeeded.size()) finding.evidence.push_back(seen_as(taken));
  }
  return finding;
}

std::string remedy_for_missing(const Cause& cause, const std::vector<std::string>& elsewhere) {
  const std::string name = printable(cause.search->wanted);
  if (library_stem(cause.search->wanted) == "libcuda") {
    return "Install NVIDIA's driver on this machine. In a container: start it with `--gpus all`, "
           "and with NVIDIA_DRIVER_CAPABILITIES=compute,utility.";
  }
  if (!elsewhere.empty()) {
    const std::string folder = printable(fs::path(elsewhere.front()).parent_path().string());
    return fmt::format("Let the loader find it: export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH",
                       folder);
  }
  return fmt::format(
      "Install the version of the library that has the name {}, beside what is there, or a build "
      "of "
      "the program for the versions that this machine has (`launchgap doctor --for`).",
      name);
}

Finding missing(const ProgramFacts& facts, const Cause& cause, const Surroundings& surroundings) {
  const LibrarySearch& search = *cause.search;
  // Something was there under this name, and could not be taken.
  for (const LibrarySearch::Attempt& attempt : search.attempts) {
    std::error_code failed;
    if (!fs::exists(fs::symlink_status(attempt.path, failed))) continue;
    if (const auto reason = why_not_loadable(attempt.path)) {
      Finding finding = library_broken(attempt.path, *reason);
      finding.evidence.push_back(
          fmt::format("{} wanted {}", printable(search.requested_by), printable(search.wanted)));
      return finding;
    }
  }
  const std::string asking =
      search.requested_by.empty() ? subject_of(facts) : printable(search.requested_by);
  Finding finding{
      .code = "program-library-missing",
      .severity = Severity::prevents,
      .subject = subject_of(facts),
      .sentence = fmt::format("The program does without the GPU since {} was not found.",
                              printable(search.wanted)),
      .evidence = {fmt::format("{} {} {}",
                               asking,
                               search.dlopened ? "opens" : "is linked with",
                               printable(search.wanted)),
                   search.why()},
      .remedy = "",
      .symptoms = {}};
  const std::vector<std::string> elsewhere = unused_copies(
      search.wanted, cause.process->environment, surroundings.site_packages, surroundings.system);
  for (const std::string& path : elsewhere)
    finding.evidence.push_back(
        fmt::format("it is {}, where the loader does not look", printable(path)));
  const std::string stem = library_stem(search.wanted);
  for (const std::string& name : surroundings.cache.names_with(stem + ".so.")) {
    if (name == search.wanted) continue;
    finding.evidence.push_back(fmt::format(
        "the loader has {}, another version, which does not take its place", printable(name)));
  }
  finding.remedy = remedy_for_missing(cause, elsewhere);
  std::set<std::string> others;
  for (const LibrarySearch& other : cause.process->searches) {
    if (other.found.empty() && other.wanted != search.wanted &&
        !has_library(*cause.process, library_stem(other.wanted)))
      others.insert(other.wanted);
  }
  for (const std::string& other : others)
    finding.symptoms.push_back(fmt::format("{} was not found either", printable(other)));
  return finding;
}

std::string remedy_for_shadowed(const Shadow& shadow) {
  const PathOrigin& origin = shadow.taken.origin;
  const std::string driver_too =
      shadow.other
          ? ""
          : " Then install NVIDIA's driver: no other libcuda.so.1 is found on this machine.";
  if (origin.kind == PathOrigin::Kind::ld_library_path) {
    std::vector<std::string> rest =
        path_entries(variable(*shadow.taken.process, "LD_LIBRARY_PATH"));
    std::erase(rest, origin.folder);
    return fmt::format("Take {} out of LD_LIBRARY_PATH: export LD_LIBRARY_PATH={}{}",
                       printable(origin.folder),
                       printable(fmt::format("{}", fmt::join(rest, ":"))),
                       driver_too.empty() ? "" : "." + driver_too);
  }
  if (origin.kind == PathOrigin::Kind::rpath || origin.kind == PathOrigin::Kind::runpath) {
    return fmt::format("Build {} without this RPATH, or take it out: patchelf --remove-rpath {}.{}",
                       printable(origin.of_file),
                       printable(origin.of_file),
                       driver_too);
  }
  return fmt::format(
      "Remove {}, or the reason why it is found first (LD_LIBRARY_PATH, LD_PRELOAD, "
      "/etc/ld.so.conf.d, a copy in the program's own folder).{}",
      printable(shadow.taken.path),
      driver_too);
}

Finding shadowed(const ProgramFacts& facts, const Shadow& shadow) {
  const Taken& taken = shadow.taken;
  const bool driver = library_stem(taken.name) == "libcuda";
  Finding finding{.code = "program-library-shadowed",
                  .severity = driver ? Severity::prevents : Severity::distorts,
                  .subject = subject_of(facts),
                  .sentence = "",
                  .evidence = {seen_as(taken)},
                  .remedy = remedy_for_shadowed(shadow),
                  .symptoms = {}};
  if (is_stub(taken.path)) {
    finding.sentence = fmt::format(
        "The program loaded the toolkit's stub {} in place of the driver; every call of it fails.",
        printable(taken.path));
  } else {
    finding.sentence = fmt::format("The program loaded {} in place of {}.",
                                   printable(taken.path),
                                   printable(shadow.other->path));
  }
  if (shadow.other) {
    finding.evidence.push_back(fmt::format("without it the loader takes {} ({})",
                                           printable(shadow.other->path),
                                           shadow.other->origin.text()));
  }
  if (const std::string value = variable(*taken.process, "LD_LIBRARY_PATH"); !value.empty())
    finding.evidence.push_back("LD_LIBRARY_PATH=" + printable(value));
  if (const std::string value = variable(*taken.process, "LD_PRELOAD"); !value.empty())
    finding.evidence.push_back("LD_PRELOAD=" + printable(value));
  return finding;
}

/// Of the processes that loaded the driver, the one that was looked at most.
const ProcessFacts& process_with_driver(const ProgramFacts& facts) {
  const ProcessFacts* best = &facts.processes.front();
  for (const ProcessFacts& process : facts.processes) {
    const auto weight = [](const ProcessFacts& p) {
      return std::tuple(p.had_driver(), p.looks_with_driver);
    };
    if (weight(process) > weight(*best)) best = &process;
  }
  return *best;
}

bool hides_all(const std::string& visible_devices) {
  return visible_devices.empty() || visible_devices.starts_with("-") ||
         visible_devices == "NoDevFiles" || visible_devices == "none";
}

Finding has_no_context(const ProgramFacts& facts) {
  const ProcessFacts& process = process_with_driver(facts);
  Finding finding{
      .code = "program-has-no-context",
      .severity = Severity::prevents,
      .subject = subject_of(facts),
      .sentence = "The program loaded the CUDA driver and never created a context on a GPU.",
      .evidence = {},
      .remedy =
          "`launchgap doctor` tells whether the GPUs of this machine can be used. If "
          "they can, the program was not told to use one, or chose not to: its own "
          "messages say which.",
      .symptoms = {}};
  for (const Taken& taken : taken_libraries(facts)) {
    if (library_stem(taken.name) == "libcuda") finding.evidence.push_back(seen_as(taken));
  }
  finding.evidence.push_back(process.nodes_open.empty()
                                 ? std::string("it holds no device node open")
                                 : fmt::format("it held {} open and had no GPU's memory mapped",
                                               joined(process.nodes_open)));
  finding.evidence.push_back(
      fmt::format("looked at {} times with the driver loaded", process.looks_with_driver));
  const auto visible = process.environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == process.environment.end()) return finding;
  finding.evidence.push_back(
      fmt::format("CUDA_VISIBLE_DEVICES='{}' in its environment", printable(visible->second)));
  if (hides_all(visible->second)) {
    finding.sentence =
        "The program loaded the CUDA driver and created no context: CUDA_VISIBLE_DEVICES hides all "
        "GPUs from it.";
    finding.remedy =
        "unset CUDA_VISIBLE_DEVICES, or name the GPUs that it should see: "
        "export CUDA_VISIBLE_DEVICES=0";
  }
  return finding;
}

Finding never_asks(const ProgramFacts& facts) {
  Finding finding{
      .code = "program-never-asks",
      .severity = Severity::note,
      .subject = subject_of(facts),
      .sentence = "The program computes on the CPU: it loaded no CUDA library and looked for none.",
      .evidence = {},
      .remedy =
          "If it should use the GPU, it is a build without CUDA (a CPU-only wheel, or "
          "compiled without CUDA): install the build for CUDA, see `launchgap doctor "
          "--for`.",
      .symptoms = {}};
  const ProcessFacts& process = facts.processes.front();
  const std::vector<Taken> taken = taken_libraries(facts);
  if (!taken.empty()) {
    finding.sentence =
        "The program computes on the CPU: it loaded libraries of CUDA's and never asked for the "
        "driver.";
    finding.remedy =
        "If it should use the GPU, tell it so: a framework asks for the driver when a GPU is "
        "first used (in PyTorch `torch.cuda.is_available()`, or `.to(\"cuda\")`).";
    for (const Taken& library : taken) finding.evidence.push_back(seen_as(library));
  } else if (!facts.traced) {
    finding.sentence = "The program computes on the CPU: it has loaded no CUDA library.";
  }
  if (process.statically_linked.value_or(false))
    finding.evidence.push_back(
        "it is statically linked: the loader has no part in it, its memory was looked at");
  finding.evidence.push_back(
      fmt::format("{} {} looked at, the first one {} times",
                  facts.processes.size(),
                  facts.processes.size() == 1 ? "process was" : "processes were",
                  process.looks));
  return finding;
}

Finding not_seen(const ProgramFacts& facts, std::string why) {
  return {.code = "program-not-seen",
          .severity = Severity::note,
          .subject = subject_of(facts),
          .sentence = "Whether the program used the GPU is not known: " + std::move(why),
          .evidence = {},
          .remedy = "Let it work longer, or look at it while it works: launchgap doctor --pid N",
          .symptoms = {}};
}

/// Where the driver has other nodes, what is mapped says nothing.
bool on_other_platform(const ProgramFacts& facts) {
  return std::ranges::any_of(facts.processes, [](const ProcessFacts& process) {
    return std::ranges::any_of(process.nodes_open, [](const std::string& node) {
      return node.starts_with("/dev/nvhost") || node.starts_with("/dev/nvmap") ||
             node.starts_with("/dev/dxg");
    });
  });
}

ProgramVerdict judge(const ProgramFacts& facts, const Surroundings& surroundings) {
  if (facts.processes.empty())
    return {GpuUse::unknown, not_seen(facts, "nothing of it could be seen.")};
  if (facts.had_context()) return {GpuUse::on_gpu, uses_gpu(facts)};
  if (const auto shadow = shadowed_library(facts, surroundings);
      shadow && library_stem(shadow->taken.name) == "libcuda") {
    return {without_gpu(facts), shadowed(facts, *shadow)};
  }
  if (const auto cause = missing_library(facts))
    return {without_gpu(facts), missing(facts, *cause, surroundings)};
  if (on_other_platform(facts))
    return {
        GpuUse::unknown,
        not_seen(facts, "on this platform (Jetson, WSL) the driver's device nodes do not tell.")};
  const ProcessFacts& driver = process_with_driver(facts);
  if (driver.had_driver() && driver.looks_with_driver < kEnoughLooks)
    return {GpuUse::unknown,
            not_seen(facts, "it loaded the driver and ended before it could be looked at.")};
  if (driver.had_driver()) {
    if (const auto shadow = shadowed_library(facts, surroundings))
      return {without_gpu(facts), shadowed(facts, *shadow)};
    return {without_gpu(facts), has_no_context(facts)};
  }
  const ProcessFacts& first = facts.processes.front();
  if (!first.loader_told && first.looks < kEnoughLooks)
    return {GpuUse::unknown, not_seen(facts, "it ended before it could be looked at.")};
  return {GpuUse::on_cpu, never_asks(facts)};
}

}  // namespace

std::string_view name_of(GpuUse use) {
  switch (use) {
    case GpuUse::on_gpu:
      return "on-gpu";
    case GpuUse::on_cpu_silently:
      return "on-cpu-silently";
    case GpuUse::on_cpu:
      return "on-cpu";
    case GpuUse::unknown:
      return "unknown";
  }
  return "";
}

bool is_stub(std::string_view path) {
  return path.find("/stubs/") != std::string_view::npos;
}

ProgramVerdict judge_program(const ProgramFacts& facts, const Surroundings& surroundings) {
  ProgramVerdict verdict = judge(facts, surroundings);
  add_limitations(facts, verdict.finding);
  return verdict;
}

}  // namespace launchgap::doctor
