#include "harness/doctor/compatibility/installation.h"

#include <filesystem>
#include <set>

#include "harness/doctor/libraries/library_copies.h"

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

}  // namespace

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

}  // namespace launchgap::doctor
