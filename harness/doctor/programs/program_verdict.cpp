#include "harness/doctor/programs/program_verdict.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/shared_library.h"
#include "harness/doctor/libraries/elf_file.h"
#include "harness/doctor/machine/examine.h"
#include "harness/doctor/programs/program_causes.h"
#include "harness/doctor/rules/diagnose.h"
#include "harness/record/finding_json.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

std::string subject_of(const ProgramFacts& facts) {
  return facts.command.empty() ? "the program" : facts.command;
}

std::string seen_as(const TakenLibrary& taken) {
  std::string text = fmt::format("{} is {}", printable(taken.name), printable(taken.path));
  if (taken.origin.kind != PathOrigin::Rule::unknown)
    text += fmt::format(" ({})", taken.origin.text());
  return text;
}

std::string joined(const std::set<std::string>& texts) {
  std::vector<std::string> shown;
  for (const std::string& text : texts) shown.push_back(printable(text));
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string remedy_for_missing(const MissingLibrary& cause,
                               const std::vector<std::string>& elsewhere) {
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
      "Install the version of the library that has the name {}, or a build of the program for this "
      "machine's versions (`launchgap doctor --for`).",
      name);
}

std::string remedy_for_shadowed(const ShadowedLibrary& shadow) {
  const PathOrigin& origin = shadow.taken.origin;
  const std::string driver_too =
      shadow.other
          ? ""
          : " Then install NVIDIA's driver: no other libcuda.so.1 is found on this machine.";
  if (origin.kind == PathOrigin::Rule::ld_library_path) {
    std::vector<std::string> rest =
        path_entries(variable(*shadow.taken.process, "LD_LIBRARY_PATH"));
    std::erase(rest, origin.folder);
    return fmt::format("Take {} out of LD_LIBRARY_PATH: export LD_LIBRARY_PATH={}{}",
                       printable(origin.folder),
                       printable(fmt::format("{}", fmt::join(rest, ":"))),
                       driver_too.empty() ? "" : "." + driver_too);
  }
  if (origin.kind == PathOrigin::Rule::rpath || origin.kind == PathOrigin::Rule::runpath) {
    return fmt::format("Build {} without this RPATH, or take it out: patchelf --remove-rpath {}.{}",
                       printable(origin.of_file),
                       printable(origin.of_file),
                       driver_too);
  }
  return fmt::format(
      "Remove {}, or what puts it first (LD_LIBRARY_PATH, LD_PRELOAD, /etc/ld.so.conf.d, a copy in "
      "the program's own folder).{}",
      printable(shadow.taken.path),
      driver_too);
}

bool hides_all(const std::string& visible_devices) {
  return visible_devices.empty() || visible_devices.starts_with("-") ||
         visible_devices == "NoDevFiles" || visible_devices == "none";
}

Finding program_uses_gpu(const ProgramFacts& facts) {
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
  for (const TakenLibrary& taken : taken_libraries(facts)) {
    if (is_basic(taken.name)) finding.evidence.push_back(seen_as(taken));
  }
  return finding;
}

/// program-library-missing; library-broken where a file of that name is there and no library.
Finding program_library_missing(const ProgramFacts& facts,
                                const MissingLibrary& cause,
                                const Surroundings& surroundings) {
  const LoaderSearch& search = *cause.search;
  // Something was there under this name, and could not be taken.
  for (const LoaderSearch::Attempt& attempt : search.attempts) {
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
  Finding finding{.code = "program-library-missing",
                  .severity = Severity::prevents,
                  .subject = subject_of(facts),
                  .sentence = fmt::format("The program does not use the GPU: {} was not found.",
                                          printable(search.wanted)),
                  .evidence = {fmt::format("{} {} {}",
                                           asking,
                                           search.dlopened ? "opens" : "is linked with",
                                           printable(search.wanted)),
                               search.why()},
                  .remedy = "",
                  .symptoms = {}};
  std::map<std::string, std::string> environment = cause.process->environment;
  environment.insert(surroundings.environment.begin(), surroundings.environment.end());
  const std::vector<std::string> elsewhere = unused_copies(
      search.wanted, library_folders(surroundings.system, environment), surroundings.system);
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
  for (const LoaderSearch& other : cause.process->searches) {
    if (other.found.empty() && other.wanted != search.wanted &&
        !has_library(*cause.process, library_stem(other.wanted)))
      others.insert(other.wanted);
  }
  for (const std::string& other : others)
    finding.symptoms.push_back(fmt::format("{} was not found either", printable(other)));
  return finding;
}

Finding program_library_shadowed(const ProgramFacts& facts, const ShadowedLibrary& shadow) {
  const TakenLibrary& taken = shadow.taken;
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

Finding program_has_no_context(const ProgramFacts& facts, const ProcessFacts& process) {
  Finding finding{
      .code = "program-has-no-context",
      .severity = Severity::prevents,
      .subject = subject_of(facts),
      .sentence = "The program loaded the CUDA driver but created no context on a GPU.",
      .evidence = {},
      .remedy =
          "Ask `launchgap doctor` whether this machine's GPUs can be used. If they can, the "
          "program was not told to use one or chose not to: see its own messages.",
      .symptoms = {}};
  for (const TakenLibrary& taken : taken_libraries(facts)) {
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
        "The program loaded the CUDA driver but created no context: CUDA_VISIBLE_DEVICES hides all "
        "GPUs.";
    finding.remedy =
        "unset CUDA_VISIBLE_DEVICES, or name the GPUs that it should see: export "
        "CUDA_VISIBLE_DEVICES=0";
  }
  return finding;
}

Finding program_never_asks(const ProgramFacts& facts) {
  Finding finding{
      .code = "program-never-asks",
      .severity = Severity::note,
      .subject = subject_of(facts),
      .sentence = "The program ran on the CPU: it loaded no CUDA library and looked for none.",
      .evidence = {},
      .remedy =
          "nothing, if it is meant for the CPU. If not, it was probably installed without CUDA: "
          "`launchgap doctor --for torch` or `--for tensorflow` tells.",
      .symptoms = {}};
  const ProcessFacts& process = facts.processes.front();
  const std::vector<TakenLibrary> taken = taken_libraries(facts);
  if (!taken.empty()) {
    finding.sentence =
        facts.traced
            ? "The program computes on the CPU: it loaded CUDA libraries but never asked for the "
              "driver."
            : "The program computes on the CPU: it loaded CUDA libraries but not the driver.";
    finding.remedy =
        "If it should use the GPU, tell it so: a framework asks for the driver when a GPU is first "
        "used (in PyTorch `torch.cuda.is_available()`, or `.to(\"cuda\")`).";
    for (const TakenLibrary& library : taken) finding.evidence.push_back(seen_as(library));
  } else if (!facts.traced) {
    finding.sentence = "The program computes on the CPU: it has loaded no CUDA library.";
  }
  if (process.statically_linked.value_or(false))
    finding.evidence.push_back(
        "it is statically linked: the loader has no part in it, its memory was looked at");
  return finding;
}

/// `why` is a sentence.
Finding program_not_seen(const ProgramFacts& facts, const std::string& why) {
  return {.code = "program-not-seen",
          .severity = Severity::note,
          .subject = subject_of(facts),
          .sentence = "Whether the program used the GPU is not known: " + why,
          .evidence = {},
          .remedy = "Let it work longer, or look at it while it works: launchgap doctor --pid N",
          .symptoms = {}};
}

/// Fewer looks than this say little: a context could have come and gone between them.
constexpr std::size_t kEnoughLooks = 2;

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
    return {GpuUse::unknown, program_not_seen(facts, "nothing of it could be seen.")};
  if (facts.had_context()) return {GpuUse::on_gpu, program_uses_gpu(facts)};
  if (const auto shadow = shadowed_library(facts, surroundings);
      shadow && library_stem(shadow->taken.name) == "libcuda") {
    return {without_gpu(facts), program_library_shadowed(facts, *shadow)};
  }
  if (const auto cause = missing_library(facts))
    return {without_gpu(facts), program_library_missing(facts, *cause, surroundings)};
  if (on_other_platform(facts))
    return {GpuUse::unknown,
            program_not_seen(
                facts, "on this platform (Jetson, WSL) the driver's device nodes do not tell.")};
  const ProcessFacts& driver = process_with_driver(facts);
  if (driver.had_driver() && driver.looks_with_driver < kEnoughLooks)
    return {
        GpuUse::unknown,
        program_not_seen(facts, "it loaded the driver and ended before it could be looked at.")};
  if (driver.had_driver()) {
    if (const auto shadow = shadowed_library(facts, surroundings))
      return {without_gpu(facts), program_library_shadowed(facts, *shadow)};
    return {without_gpu(facts), program_has_no_context(facts, driver)};
  }
  const ProcessFacts& first = facts.processes.front();
  if (!first.loader_told && first.looks < kEnoughLooks)
    return {GpuUse::unknown, program_not_seen(facts, "it ended before it could be looked at.")};
  return {GpuUse::on_cpu, program_never_asks(facts)};
}

bool concerns_every_program(const Finding& finding, const ProgramFacts& facts) {
  // Whether it asked for the driver, only the loader's account tells.
  const bool may_have_asked = !facts.traced && !taken_libraries(facts).empty();
  return finding.code == "program-has-no-context" ||
         (finding.code == "program-never-asks" && may_have_asked) ||
         (finding.code == "program-library-missing" &&
          finding.sentence.find("libcuda.so.1") != std::string::npos);
}

std::string line_of(GpuUse use, bool runs) {
  switch (use) {
    case GpuUse::on_gpu:
      return runs ? "It is on the GPU." : "It was on the GPU.";
    case GpuUse::on_cpu_silently:
      return "It asked for the GPU, did not get it, and silently went on with the CPU.";
    case GpuUse::on_cpu:
      return runs ? "It is on the CPU." : "It was on the CPU.";
    case GpuUse::unknown:
      return "Whether it is on the GPU could not be seen.";
  }
  return "";
}

}  // namespace

std::string_view name_of(GpuUse use) {
  constexpr std::string_view kNames[] = {"on-gpu", "on-cpu-silently", "on-cpu", "unknown"};
  return kNames[static_cast<std::size_t>(use)];
}

bool is_stub(std::string_view path) {
  return path.find("/stubs/") != std::string_view::npos;
}

ProgramVerdict judge_program(const ProgramFacts& facts, const Surroundings& surroundings) {
  ProgramVerdict verdict = judge(facts, surroundings);
  verdict.finding.evidence.insert(
      verdict.finding.evidence.end(), facts.limitations.begin(), facts.limitations.end());
  return verdict;
}

ProgramVerdict judge_program_here(const ProgramFacts& facts) {
  const SystemFiles files = SystemFiles::of_this_system();
  ProgramVerdict verdict = judge_program(facts, {files, LoaderCache::of(files), own_environment()});
  if (verdict.use == GpuUse::on_gpu || !concerns_every_program(verdict.finding, facts))
    return verdict;
  const auto environment =
      facts.processes.empty() ? own_environment() : facts.processes.front().environment;
  const std::unique_ptr<MachineFacts> machine =
      examine({.prove = false, .environment = environment});
  std::optional<Finding> cause = why_no_driver(*machine);
  if (!cause) return verdict;
  const Finding& shown = verdict.finding;
  cause->subject = shown.subject;
  cause->severity = shown.severity;
  cause->symptoms.insert(cause->symptoms.begin(), shown.sentence);
  cause->symptoms.insert(cause->symptoms.end(), shown.evidence.begin(), shown.evidence.end());
  verdict.finding = *std::move(cause);
  return verdict;
}

std::string text(const ProgramFacts& facts, const ProgramVerdict& verdict, const TextStyle& style) {
  const bool runs = !facts.exit_code && !facts.signal;
  std::string out = fmt::format("\nlaunchgap doctor: {}\n", line_of(verdict.use, runs));
  out += findings_text({verdict.finding},
                       {.colour = style.colour, .verbose = true, .width = style.width});
  const std::vector<Evidence>& said = verdict.finding.evidence;
  for (const std::string& limitation : facts.limitations) {
    if (std::ranges::find(said, limitation) == said.end())
      out += fmt::format("{:>10}{}\n", "mind ", wrapped(limitation, 10, style.width));
  }
  return out;
}

Json to_json(const ProgramFacts& facts, const ProgramVerdict& verdict) {
  return {{"use", name_of(verdict.use)},
          {"program", to_json(facts)},
          {"findings", Json::array({to_json(verdict.finding)})}};
}

}  // namespace launchgap::doctor
