#include "harness/doctor/machine_screen.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/doctor/compatibility/installation.h"
#include "harness/doctor/rules/diagnose.h"
#include "harness/record/finding_json.h"

namespace launchgap::doctor {
namespace {

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

}  // namespace

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

}  // namespace launchgap::doctor
