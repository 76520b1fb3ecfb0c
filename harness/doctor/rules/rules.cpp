#include "harness/doctor/rules/rules.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "harness/core/number_text.h"
#include "harness/doctor/compatibility/compatibility.h"

namespace launchgap::doctor {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The driver reads numbers as strtol does: "1x" is 1.
std::optional<std::size_t> by_number(std::string_view entry, std::size_t count) {
  const std::optional<long> value = take_number<long>(entry);
  if (!value || *value < 0 || static_cast<std::size_t>(*value) >= count) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

/// By its beginning, if that is no other's.
std::optional<std::size_t> by_uuid(std::string_view entry,
                                   const std::vector<DeviceFacts>& devices) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].uuid.starts_with(entry)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

VisibleDevices read_visible_devices(std::string_view value,
                                    const std::vector<DeviceFacts>& devices) {
  VisibleDevices visible;
  const std::string_view list = trimmed(value);
  if (list.empty() || list == "-1" || list == "NoDevFiles") return visible;
  const bool uuids = list.starts_with("GPU-") || list.starts_with("MIG-");
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view entry = trimmed(list.substr(begin, end - begin));
    begin = end + 1;
    const auto device = uuids ? by_uuid(entry, devices) : by_number(entry, devices.size());
    // Without the variable CUDA lists one instance of a partitioned GPU, whatever others there are.
    if (!device && entry.starts_with("MIG-")) {
      visible.unknown = true;
      continue;
    }
    if (!device && entry.empty() && end == list.size()) break;  // a comma at the end
    if (!device) {
      // "-1" in a list is a way to end it.
      if (entry != "-1") visible.invalid = entry;
      break;
    }
    if (std::ranges::find(visible.shown, *device) != visible.shown.end()) {
      visible.repeated = true;
      visible.shown.clear();
      break;
    }
    visible.shown.push_back(*device);
  }
  return visible;
}

Finding about(const std::string& subject,
              const char* code,
              Severity severity,
              std::string sentence,
              const std::vector<std::string>& evidence,
              std::string remedy) {
  return {code, severity, subject, std::move(sentence), in_words(evidence), std::move(remedy)};
}

std::string driver_file(const MachineFacts& facts) {
  const DriverFacts& driver = facts.driver;
  if (!driver.loaded()) return "libcuda.so.1 is not found";
  return fmt::format("libcuda.so.1 is {}{}",
                     driver.path,
                     driver.origin.empty() ? "" : fmt::format(" ({})", driver.origin));
}

std::string kernel_driver(const MachineFacts& facts) {
  const Machine& machine = facts.machine;
  if (machine.module_version)
    return fmt::format("the kernel's driver is {}{}",
                       machine.module_version->text(),
                       machine.open_module ? " (open modules)" : "");
  return machine.nvidia_module ? "the kernel module nvidia is loaded"
                               : "the kernel module nvidia is not loaded";
}

std::string call_text(const std::string& call, int code, const std::string& text) {
  return fmt::format("{} answers {}{}", call, code, text.empty() ? "" : fmt::format(" ({})", text));
}

std::vector<std::string> gpus_on_pci(const MachineFacts& facts) {
  std::vector<std::string> lines;
  for (const PciController& gpu : facts.machine.gpus) {
    const auto known = find_gpu_by_pci(gpu.device_id);
    lines.push_back(fmt::format("{}: {} (10de:{:04x}), {}",
                                gpu.address,
                                known ? known->name : "NVIDIA GPU",
                                gpu.device_id,
                                gpu.bound_to.empty()
                                    ? "no kernel driver has it"
                                    : fmt::format("the kernel driver {} has it", gpu.bound_to)));
  }
  return lines;
}

std::vector<std::string> nodes_in_trouble(const MachineFacts& facts) {
  std::vector<std::string> lines;
  for (const DeviceNode& node : facts.machine.nodes) {
    if (node.open_error == 0) continue;
    lines.push_back(fmt::format("{}{}: {}",
                                node.path,
                                node.mode.empty() ? "" : fmt::format(" ({})", node.mode),
                                std::strerror(node.open_error)));
  }
  return lines;
}

std::string newest_cuda(const MachineFacts& facts) {
  std::optional<Version> newest;
  const auto consider = [&](const std::optional<Version>& version) {
    if (version && (!newest || *newest < *version)) newest = version;
  };
  for (const Toolkit& toolkit : facts.machine.toolkits) consider(toolkit.version);
  for (const LibraryFacts& library : facts.libraries) {
    if (library.kind == "cudart") consider(Version::parse(library.version));
  }
  return newest ? newest->prefix(2) : "";
}

std::string driver_wanted(const MachineFacts& facts) {
  const std::string cuda = newest_cuda(facts);
  const auto version = Version::parse(cuda);
  const auto need = version ? driver_needed_by(*version) : std::nullopt;
  // What the GPUs still allow is a limit from above.
  std::string limit;
  for (const PciController& gpu : facts.machine.gpus) {
    const auto known = find_gpu_by_pci(gpu.device_id);
    const ArchitectureRow* const life = known ? life_of(known->capability) : nullptr;
    if (!life || !life->last_driver_branch) continue;
    if (need && *life->last_driver_branch < need->minimum.major()) {
      return fmt::format(
          "NVIDIA's driver of branch R{}, the last for {} ({}); the CUDA {} that is here is too "
          "new for it",
          *life->last_driver_branch,
          known->name,
          life->architecture,
          cuda);
    }
    limit = fmt::format(", and for {} ({}) no newer than branch R{}",
                        known->name,
                        life->architecture,
                        *life->last_driver_branch);
  }
  return (need ? fmt::format("NVIDIA's driver, {} or newer for CUDA {}", need->minimum.text(), cuda)
               : "NVIDIA's driver") +
         limit;
}

std::string install_driver(const MachineFacts& facts) {
  return fmt::format(
      "install {}: the package cuda-drivers (or nvidia-open) of NVIDIA's repository; or, where it "
      "is new enough, the distribution's: on Debian `apt install nvidia-driver` (component "
      "non-free), on Ubuntu `ubuntu-drivers install`; then restart",
      driver_wanted(facts));
}

std::vector<std::string> symptoms_without_driver(const MachineFacts& facts, const Finding& cause) {
  std::vector<std::string> symptoms;
  const auto add = [&](const std::string& symptom) {
    if (std::ranges::find(cause.evidence, symptom) == cause.evidence.end())
      symptoms.push_back(symptom);
  };
  if (facts.nvml.failed)
    add(call_text("NVML", facts.nvml.failed->code, facts.nvml.failed->text));
  else if (!facts.nvml.died.empty())
    add("NVML: " + facts.nvml.died);
  if (facts.driver.init && facts.driver.init->code != 0)
    add(call_text("cuInit", facts.driver.init->code, facts.driver.init->text));
  for (const LibraryFacts& library : facts.libraries) {
    if (library.call && library.call->code != 0)
      add(fmt::format("{}: {}",
                      library.soname,
                      call_text("cudaGetDeviceCount", library.call->code, library.call->text)));
    if (!library.died.empty() && !facts.driver.died.empty())
      add(fmt::format("{}: {}", library.soname, library.died));
  }
  return symptoms;
}

}  // namespace launchgap::doctor
