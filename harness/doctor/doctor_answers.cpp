#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/doctor/compatibility/framework_answer.h"
#include "harness/doctor/compatibility/python_packages.h"
#include "harness/doctor/doctor.h"
#include "harness/doctor/libraries/library_copies.h"
#include "harness/doctor/machine/examine.h"
#include "harness/doctor/machine/probe.h"
#include "harness/doctor/machine/read_machine.h"
#include "harness/doctor/programs/process_files.h"
#include "harness/doctor/programs/program_verdict.h"
#include "harness/doctor/programs/watch_program.h"
#include "harness/doctor/rules/diagnose.h"
#include "harness/record/finding_json.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> sonames_in_reach(const MachineFacts& facts, const SystemFiles& files) {
  std::set<std::string> names;
  for (const std::string& name : LoaderCache::of(files).names_with("libcu")) names.insert(name);
  const auto variable = facts.machine.environment.find("LD_LIBRARY_PATH");
  if (variable != facts.machine.environment.end() && !variable->second.empty()) {
    for (const std::string& folder : path_entries(variable->second)) {
      std::error_code failed;
      for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
           entry.increment(failed)) {
        const std::string name = entry->path().filename();
        if (is_cuda_library(name)) names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

/// A GPU's name and compute capability, or those that its PCI id stands for.
std::optional<Capability> capability_of(const JoinedGpu& gpu) {
  if (gpu.capability) return Capability{*gpu.capability / 10, *gpu.capability % 10};
  const auto known = gpu.on_pci ? find_gpu_by_pci(gpu.on_pci->device_id) : std::nullopt;
  return known ? std::optional(known->capability) : std::nullopt;
}

std::string name_of_gpu(const JoinedGpu& gpu) {
  if (!gpu.name.empty()) return gpu.name;
  const auto known = gpu.on_pci ? find_gpu_by_pci(gpu.on_pci->device_id) : std::nullopt;
  return known ? known->name : "NVIDIA GPU";
}

/// What this machine has. Libraries are those that the loader would find by its cache and by
/// LD_LIBRARY_PATH; pip's wheels are left to the frameworks that come with them.
Installation installation_of(const MachineFacts& facts,
                             const ActivePython& python,
                             const SystemFiles& files) {
  Installation installation;
  installation.gpus_known = true;
  for (const JoinedGpu& gpu : facts.gpus) {
    installation.gpus.push_back({name_of_gpu(gpu),
                                 capability_of(gpu),
                                 gpu.pci.empty() ? gpu.uuid : gpu.pci,
                                 gpu.in_driver != nullptr});
  }
  installation.driver_known = true;
  // Without libcuda no program has a driver, whatever the kernel has.
  if (facts.driver.loaded()) {
    installation.driver = facts.machine.module_version ? facts.machine.module_version
                          : facts.nvml.driver_version  ? facts.nvml.driver_version
                                                       : facts.driver.version;
  }
  if (facts.driver.loaded() && facts.driver.cuda_version) {
    const int version = *facts.driver.cuda_version;
    installation.driver_cuda =
        Version::parse(std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
  }
  installation.libraries_known = true;
  installation.sonames = sonames_in_reach(facts, files);
  for (const LibraryFacts& library : facts.libraries) {
    if (library.kind == "cudnn" && !library.path.empty())
      installation.cudnn = Version::parse(library.version);
  }
  installation.python = python.executable;
  for (const PythonPackage& package : python.packages) installation.installed.push_back(package);
  return installation;
}

/// What is known of one kind of work: "proven", "no", or what the driver says without a proof.
std::string work_text(const JoinedGpu& gpu, std::string_view name) {
  if (gpu.hidden) return "hidden";
  if (!gpu.in_driver) return "no";
  if (!gpu.locked.empty()) return "in use";
  if (!gpu.proof) return "not tried";
  const ProofStep* const step = gpu.step(name);
  return step && step->status == "ok" ? "proven" : "no";
}

std::string capability_text(const JoinedGpu& gpu) {
  const auto capability = capability_of(gpu);
  return capability ? capability->text() : "–";
}

std::string memory_text(const JoinedGpu& gpu) {
  // Of an instance NVML tells the whole GPU's.
  if (gpu.in_nvml && !is_instance(gpu) && gpu.in_nvml->memory_free_bytes &&
      gpu.in_nvml->memory_total_bytes)
    return fmt::format("{} of {}",
                       bytes_text(static_cast<double>(*gpu.in_nvml->memory_free_bytes)),
                       bytes_text(static_cast<double>(*gpu.in_nvml->memory_total_bytes)));
  if (gpu.in_driver && gpu.in_driver->memory_bytes)
    return "of " + bytes_text(static_cast<double>(*gpu.in_driver->memory_bytes));
  return "–";
}

std::string gpu_table(const MachineFacts& facts) {
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "index", "capability", "PCI", "kernels", "matmul", "convolution", "free memory"}};
  for (const JoinedGpu& gpu : facts.gpus) {
    rows.push_back({name_of_gpu(gpu),
                    gpu.in_driver && !gpu.hidden ? std::to_string(gpu.in_driver->index) : "–",
                    capability_text(gpu),
                    gpu.pci.empty() ? gpu.uuid : gpu.pci,
                    work_text(gpu, "kernel"),
                    work_text(gpu, "matmul"),
                    work_text(gpu, "convolution"),
                    memory_text(gpu)});
  }
  return table(rows);
}

/// By whoever knows it.
std::optional<Version> driver_version(const MachineFacts& facts) {
  if (facts.machine.module_version) return facts.machine.module_version;
  return facts.nvml.driver_version ? facts.nvml.driver_version : facts.driver.version;
}

/// "driver 580.65.06 for CUDA 13.0, toolkit 13.0 (CUDA_HOME), cudart 13.0, cuBLAS …"
std::string software_line(const MachineFacts& facts) {
  std::vector<std::string> parts;
  const DriverFacts& driver = facts.driver;
  if (driver.loaded()) {
    const auto version = driver_version(facts);
    parts.push_back(fmt::format("driver{}{}",
                                version ? " " + version->text() : "",
                                driver.cuda_version ? fmt::format(" for CUDA up to {}.{}",
                                                                  *driver.cuda_version / 1000,
                                                                  *driver.cuda_version % 1000 / 10)
                                                    : ""));
  } else {
    parts.emplace_back("no driver");
  }
  for (const Toolkit& toolkit : facts.machine.toolkits) {
    if (!toolkit.version) continue;
    parts.push_back(fmt::format("toolkit {}", toolkit.version->text()));
    break;
  }
  for (const LibraryFacts& library : facts.libraries) {
    if (library.path.empty() || library.version.empty()) continue;
    const std::string name = library.kind == "cublas"  ? "cuBLAS"
                             : library.kind == "cudnn" ? "cuDNN"
                             : library.kind == "cupti" ? "CUPTI"
                             : library.kind == "nccl"  ? "NCCL"
                                                       : "cudart";
    parts.push_back(fmt::format("{} {}", name, library.version));
  }
  return fmt::format("{}\n", fmt::join(parts, " · "));
}

/// The first line: how many GPUs can be used, or why none can.
std::string verdict(const MachineFacts& facts, const std::vector<Finding>& findings) {
  const std::size_t all = facts.gpus.size();
  const std::size_t usable = usable_gpus(facts, findings);
  const auto hidden =
      static_cast<std::size_t>(std::ranges::count_if(facts.gpus, &JoinedGpu::hidden));
  if (usable == 0 && !findings.empty()) return findings.front().sentence;
  if (usable == 0) return "There is no NVIDIA GPU.";
  if (!facts.proven) {
    return fmt::format("The driver lists {}{}; nothing was run on {}.",
                       all == 1        ? "the GPU"
                       : usable == all ? fmt::format("all {} GPUs", all)
                                       : fmt::format("{} of {} GPUs", usable, all),
                       hidden ? fmt::format(" ({} hidden)", hidden) : "",
                       usable == 1 ? "it" : "them");
  }
  return fmt::format("{}{} can be used, proven by a kernel, a matrix product and a convolution.",
                     all == 1        ? "The GPU"
                     : usable == all ? fmt::format("All {} GPUs", all)
                                     : fmt::format("{} of {} GPUs", usable, all),
                     hidden ? fmt::format(" ({} hidden)", hidden) : "");
}

/// One line of verdict, one of software, one for each GPU, then the findings.
std::string screen(const MachineFacts& facts,
                   const std::vector<Finding>& findings,
                   const TextStyle& style) {
  std::string out = fmt::format("{}{}{}{}\n",
                                style.colour ? "\x1b[1m" : "",
                                wrapped(verdict(facts, findings), 0, style.width),
                                style.colour ? "\x1b[0m" : "",
                                facts.simulated ? "  (simulated)" : "");
  out += wrapped(software_line(facts), 0, style.width);
  if (!facts.gpus.empty()) out += "\n" + gpu_table(facts);
  const bool said = usable_gpus(facts, findings) == 0;
  return out + findings_text(findings, style, said);
}

/// {"gpus": […], "driver": {…}, "libraries": […], "findings": […]}: docs/doctor.md has every field.
Json to_json(const MachineFacts& facts, const std::vector<Finding>& findings) {
  Json json;
  json["simulated"] = facts.simulated;
  json["seconds"] = facts.seconds;
  json["proven"] = facts.proven;
  json["usable_gpus"] = usable_gpus(facts, findings);
  json["driver"] = Json::object();
  const auto put = [](Json& into, const char* key, const auto& value) {
    if (value) into[key] = *value;
  };
  const auto put_version = [](Json& into, const char* key, const std::optional<Version>& value) {
    if (value) into[key] = value->text();
  };
  Json& driver = json["driver"];
  put_version(driver, "version", driver_version(facts));
  put_version(driver, "kernel_version", facts.machine.module_version);
  put_version(driver, "library_version", facts.driver.version);
  put(driver, "cuda_version", facts.driver.cuda_version);
  if (facts.driver.loaded()) driver["path"] = facts.driver.path;
  if (!facts.driver.origin.empty()) driver["origin"] = facts.driver.origin;
  if (facts.driver.init) driver["init"] = facts.driver.init->code;
  json["container"] = facts.machine.container;
  json["toolkits"] = Json::array();
  for (const Toolkit& toolkit : facts.machine.toolkits) {
    Json entry = {{"pointed_by", toolkit.pointed_by}, {"path", toolkit.path}};
    put_version(entry, "version", toolkit.version);
    json["toolkits"].push_back(entry);
  }
  json["libraries"] = Json::array();
  for (const LibraryFacts& library : facts.libraries) {
    Json entry = {{"library", library.kind}, {"soname", library.soname}};
    if (!library.path.empty()) entry["path"] = library.path;
    if (!library.version.empty()) entry["version"] = library.version;
    if (!library.origin.empty()) entry["origin"] = library.origin;
    if (!library.others.empty()) entry["others"] = library.others;
    if (!library.error.empty()) entry["error"] = library.error;
    if (!library.machine_code.empty()) entry["machine_code_for"] = library.machine_code;
    if (!library.ptx.empty()) entry["ptx_for"] = library.ptx;
    json["libraries"].push_back(entry);
  }
  json["gpus"] = Json::array();
  for (const JoinedGpu& gpu : facts.gpus) {
    Json entry = {{"name", name_of_gpu(gpu)},
                  {"pci", gpu.pci},
                  {"uuid", gpu.uuid},
                  {"usable", is_usable(gpu, findings)},
                  {"on_pci", gpu.on_pci != nullptr},
                  {"in_nvml", gpu.in_nvml != nullptr},
                  {"in_driver", gpu.in_driver != nullptr},
                  {"hidden", gpu.hidden}};
    if (gpu.node)
      entry["node"] = {
          {"path", gpu.node->path}, {"mode", gpu.node->mode}, {"open_error", gpu.node->open_error}};
    if (gpu.capability) entry["compute_capability"] = capability_text(gpu);
    if (!gpu.locked.empty()) entry["locked"] = gpu.locked;
    if (gpu.proof) {
      entry["proof"] = Json::array();
      for (const ProofStep& step : gpu.proof->steps) {
        Json told = {{"step", step.name}, {"status", step.status}, {"ms", step.ms}};
        if (!step.detail.empty()) told["detail"] = step.detail;
        put(told, "code", step.code);
        entry["proof"].push_back(told);
      }
    }
    json["gpus"].push_back(entry);
  }
  json["findings"] = Json::array();
  for (const Finding& finding : findings) json["findings"].push_back(to_json(finding));
  return json;
}

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
