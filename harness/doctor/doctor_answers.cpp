#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/installation.h"
#include "harness/doctor/compatibility/python_packages.h"
#include "harness/doctor/doctor.h"
#include "harness/doctor/machine/examine.h"
#include "harness/doctor/machine/probe.h"
#include "harness/doctor/machine/read_machine.h"
#include "harness/doctor/machine_screen.h"
#include "harness/doctor/programs/process_files.h"
#include "harness/doctor/programs/program_verdict.h"
#include "harness/doctor/programs/watch_program.h"
#include "harness/doctor/rules/diagnose.h"

namespace launchgap::doctor {
namespace {

Diagnosis diagnose_program(const ProgramFacts& program) {
  ProgramVerdict verdict = judge_program_here(program);
  return {{verdict.finding},
          verdict.use == GpuUse::on_gpu,
          [program, verdict](const TextStyle& style) { return text(program, verdict, style); },
          to_json(program, verdict)};
}

WatchedProgram diagnose_watched(const WatchResult& result) {
  WatchedProgram watched{
      result.exit_code, result.facts.signal.value_or(0), std::nullopt, result.not_started};
  if (!watched.problem.empty()) return watched;
  try {
    watched.diagnosis = diagnose_program(result.facts);
  } catch (const std::exception& error) {
    watched.problem = error.what();
  }
  return watched;
}

}  // namespace

Diagnosis diagnose_machine(const MachineQuestion& question) {
  const std::shared_ptr<const MachineFacts> facts =
      examine({.prove = question.prove, .environment = {}});
  std::vector<Finding> findings = diagnose(*facts);
  if (question.python_packages) {
    const ActivePython python = active_python(SystemFiles::of_this_system(), own_environment());
    for (Finding& finding : python_findings(python)) findings.push_back(std::move(finding));
    sort_findings(findings);
  }
  return {findings,
          usable_gpus(*facts, findings) > 0,
          [facts, findings](const TextStyle& style) { return screen(*facts, findings, style); },
          to_json(*facts, findings)};
}

Diagnosis answer_what_if(const WhatIf& question) {
  const SystemFiles files = SystemFiles::of_this_system();
  const std::unique_ptr<MachineFacts> facts = examine({});
  const ActivePython python = active_python(files, own_environment());
  const FrameworkAnswer answer = what_if(question, installation_of(*facts, python, files));
  const bool any_works = std::ranges::any_of(answer.gpus, [](const GpuAnswer& gpu) {
    return gpu.outcome == Outcome::works || gpu.outcome == Outcome::works_after_compiling;
  });
  return {answer.findings,
          any_works,
          [answer](const TextStyle& style) { return text(answer, style); },
          to_json(answer)};
}

Diagnosis diagnose_process(std::string_view pid) {
  const pid_t process = parse_pid(pid);
  ComputingProcesses computing;
  return diagnose_program(
      look_at_program(process, SystemFiles::of_this_system(), [&] { return computing.now(); }));
}

WatchedProgram watch(const std::vector<std::string>& command) {
  ComputingProcesses computing;
  return diagnose_watched(
      watch_program({command, [&] { return computing.now(); }}, SystemFiles::of_this_system()));
}

WatchedProgram watch_measured(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment,
                              const std::function<bool()>& enough) {
  return diagnose_watched(
      watch_program({command, {}, environment, false, enough}, SystemFiles::of_this_system()));
}

std::string explain(const std::string& code) {
  const std::string_view page = page_of(code);
  if (!page.empty()) return std::string(page);
  const std::vector<std::string> codes(all_codes().begin(), all_codes().end());
  if (code == "list") return fmt::format("{}\n", fmt::join(codes, "\n"));
  const std::string near = did_you_mean(code, codes);
  throw UsageError(
      "no finding has the code '{}'{} `launchgap doctor --explain list` shows all codes",
      printable(code, 60),
      near.empty() ? "." : near);
}

std::optional<int> answer_probe_job(const Json& job) {
  if (!is_probe(job)) return std::nullopt;
  return answer_probe(job);
}

}  // namespace launchgap::doctor
