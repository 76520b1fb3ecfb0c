#include "harness/doctor/programs/verdict.h"

#include <algorithm>
#include <csignal>
#include <tuple>

#include "harness/doctor/programs/causes.h"
#include "harness/doctor/programs/findings.h"

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
  verdict.finding.evidence.insert(
      verdict.finding.evidence.end(), facts.limitations.begin(), facts.limitations.end());
  return verdict;
}

}  // namespace launchgap::doctor
