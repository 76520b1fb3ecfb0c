#include "harness/doctor/programs/program_verdict.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include "harness/core/text.h"
#include "harness/doctor/machine/examine.h"
#include "harness/doctor/programs/program_causes.h"
#include "harness/doctor/programs/program_findings.h"
#include "harness/doctor/rules/diagnose.h"
#include "harness/record/finding_json.h"

namespace launchgap::doctor {
namespace {

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
