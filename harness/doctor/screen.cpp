#include "harness/doctor/screen.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/doctor/frameworks/compatibility.h"

namespace launchgap::doctor {
namespace {

constexpr std::string_view kReset = "\x1b[0m";

std::string_view colour_of(Severity severity) {
  switch (severity) {
    case Severity::prevents:
      return "\x1b[1;31m";
    case Severity::distorts:
      return "\x1b[1;33m";
    case Severity::note:
      return "\x1b[1;36m";
  }
  return "";
}

const ProofStep* step_of(const Gpu& gpu, std::string_view name) {
  if (!gpu.proof) return nullptr;
  const auto found = std::ranges::find(gpu.proof->steps, name, &ProofStep::name);
  return found == gpu.proof->steps.end() ? nullptr : &*found;
}

/// What is known of one kind of work: "proven", "no", or what the driver says without a proof.
std::string work_text(const Gpu& gpu, std::string_view name) {
  if (gpu.hidden) return "hidden";
  if (!gpu.in_driver) return "no";
  if (!gpu.locked.empty()) return "in use";
  if (!gpu.proof) return "not tried";
  const ProofStep* const step = step_of(gpu, name);
  return step && step->status == "ok" ? "proven" : "no";
}

std::string capability_text(const Gpu& gpu) {
  if (gpu.capability) return fmt::format("{}.{}", *gpu.capability / 10, *gpu.capability % 10);
  const auto known = gpu.on_pci ? find_gpu_by_pci(gpu.on_pci->device_id) : std::nullopt;
  return known ? known->capability.text() : "–";
}

std::string name_text(const Gpu& gpu) {
  if (!gpu.name.empty()) return gpu.name;
  const auto known = gpu.on_pci ? find_gpu_by_pci(gpu.on_pci->device_id) : std::nullopt;
  return known ? known->name : "NVIDIA GPU";
}

std::string memory_text(const Gpu& gpu) {
  // Of an instance NVML tells the whole GPU's.
  if (gpu.in_nvml && !is_instance(gpu) && gpu.in_nvml->memory_free_bytes &&
      gpu.in_nvml->memory_total_bytes)
    return fmt::format("{} of {}",
                       bytes_text(*gpu.in_nvml->memory_free_bytes),
                       bytes_text(*gpu.in_nvml->memory_total_bytes));
  if (gpu.in_driver && gpu.in_driver->memory_bytes)
    return "of " + bytes_text(static_cast<double>(*gpu.in_driver->memory_bytes));
  return "–";
}

std::string gpu_table(const Facts& facts) {
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "index", "capability", "PCI", "kernels", "matmul", "convolution", "free memory"}};
  for (const Gpu& gpu : facts.gpus) {
    rows.push_back({name_text(gpu),
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
std::optional<Version> driver_version(const Facts& facts) {
  if (facts.machine.module_version) return facts.machine.module_version;
  return facts.nvml.driver_version ? facts.nvml.driver_version : facts.driver.version;
}

/// "driver 580.65.06 for CUDA 13.0, toolkit 13.0 (CUDA_HOME), cudart 13.0, cuBLAS …"
std::string software_line(const Facts& facts) {
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
std::string verdict(const Facts& facts, const std::vector<Finding>& findings) {
  const std::size_t all = facts.gpus.size();
  const std::size_t usable = usable_gpus(facts, findings);
  const auto hidden = static_cast<std::size_t>(std::ranges::count_if(facts.gpus, &Gpu::hidden));
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

constexpr std::size_t kIndent = 10;

std::string paragraph(const char* head, const std::string& text, std::size_t width) {
  return fmt::format("{:>{}}{}\n", head, kIndent, wrapped(text, kIndent, width));
}

/// What was seen, what follows from it, what to do and where more is said.
std::string details(const Finding& finding, std::size_t width) {
  std::string out;
  if (finding.subject != "machine") out += paragraph("where ", finding.subject, width);
  const char* head = "seen ";
  for (const std::string& line : finding.evidence) {
    if (line.empty()) continue;
    out += paragraph(head, line, width);
    head = "";
  }
  head = "hence ";
  for (const std::string& line : finding.symptoms) {
    out += paragraph(head, line, width);
    head = "";
  }
  return out + paragraph("do ", finding.remedy, width) +
         paragraph("more ", fmt::format("launchgap doctor --explain {}", finding.code), width);
}

/// The sentence, with how many it is about.
std::string sentence_of(const Finding& finding) {
  return finding.subjects.size() < 2
             ? finding.sentence
             : fmt::format("{} ({} GPUs)", finding.sentence, finding.subjects.size());
}

}  // namespace

bool is_usable(const Gpu& gpu, const std::vector<Finding>& findings) {
  if (!gpu.in_driver || gpu.hidden) return false;
  if (gpu.proof) {
    const ProofStep* const kernel = step_of(gpu, "kernel");
    if (!kernel || kernel->status != "ok" || !gpu.proof->died.empty()) return false;
  }
  // A library that cannot serve it takes one kind of work away, not the GPU.
  return std::ranges::none_of(findings, [&](const Finding& finding) {
    return finding.severity == Severity::prevents && finding.is_about(gpu.subject()) &&
           !finding.code.starts_with("cudnn") && !finding.code.starts_with("cublas");
  });
}

std::size_t usable_gpus(const Facts& facts, const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(
      std::ranges::count_if(facts.gpus, [&](const Gpu& gpu) { return is_usable(gpu, findings); }));
}

std::string findings_text(const std::vector<Finding>& findings,
                          bool colour,
                          bool verbose,
                          std::size_t width,
                          bool first_is_said) {
  std::string out;
  const bool only_notes = findings.empty() || findings.front().severity == Severity::note;
  bool any_brief = false;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool said = i == 0 && first_is_said;
    const bool brief = finding.severity == Severity::note && !verbose && !said &&
                       !(only_notes && findings.size() == 1);
    any_brief = any_brief || brief;
    // Notes stand together.
    if (!brief || i == 0 || findings[i - 1].severity != Severity::note) out += '\n';
    const std::string text = said    ? finding.code
                             : brief ? fmt::format("{} [{}]", sentence_of(finding), finding.code)
                                     : sentence_of(finding);
    out += fmt::format("{}{:<{}}{}{}\n",
                       colour ? colour_of(finding.severity) : "",
                       name_of(finding.severity),
                       kIndent,
                       colour ? kReset : "",
                       wrapped(text, kIndent, width));
    if (!brief) out += details(finding, width);
  }
  if (any_brief)
    out += paragraph("", "--verbose shows what was seen, and --explain CODE what it means.", width);
  return out;
}

std::string screen(const Facts& facts,
                   const std::vector<Finding>& findings,
                   bool colour,
                   bool verbose,
                   std::size_t width) {
  std::string out = fmt::format("{}{}{}{}\n",
                                colour ? "\x1b[1m" : "",
                                wrapped(verdict(facts, findings), 0, width),
                                colour ? kReset : "",
                                facts.simulated ? "  (simulated)" : "");
  out += wrapped(software_line(facts), 0, width);
  if (!facts.gpus.empty()) out += "\n" + gpu_table(facts);
  const bool said = usable_gpus(facts, findings) == 0;
  return out + findings_text(findings, colour, verbose, width, said);
}

Json to_json(const Facts& facts, const std::vector<Finding>& findings) {
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
  for (const Gpu& gpu : facts.gpus) {
    Json entry = {{"name", name_text(gpu)},
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
    if (gpu.capability)
      entry["compute_capability"] =
          fmt::format("{}.{}", *gpu.capability / 10, *gpu.capability % 10);
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
