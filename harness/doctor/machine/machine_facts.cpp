#include "harness/doctor/machine/machine_facts.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

namespace launchgap::doctor {
namespace {

/// "0000:07:00.0" of "00000000:07:00.0" and of "0000:07:00.0", in lower case.
std::string plain_address(std::string address) {
  std::ranges::transform(address, address.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t domain = address.find(':');
  if (domain != std::string::npos && domain > 4) address.erase(0, domain - 4);
  return address;
}

std::optional<int> capability_number(const std::optional<std::string>& text) {
  const auto version = Version::parse(text.value_or(""));
  if (!version) return std::nullopt;
  return version->major() * 10 + version->minor();
}

/// An instance of a partitioned GPU is where the GPU is, and in its state.
void take_from_parent(JoinedGpu& instance,
                      const std::vector<JoinedGpu>& gpus,
                      const std::string& pci) {
  instance.pci = pci;
  for (const JoinedGpu& parent : gpus) {
    if (&parent == &instance || parent.pci != pci || parent.in_driver) continue;
    instance.on_pci = parent.on_pci;
    instance.in_nvml = parent.in_nvml;
    instance.minor = parent.minor;
  }
}

}  // namespace

const ProofStep* JoinedGpu::step(std::string_view proof_step) const {
  if (!proof) return nullptr;
  const auto found = std::ranges::find(proof->steps, proof_step, &ProofStep::name);
  return found == proof->steps.end() ? nullptr : &*found;
}

bool is_instance(const JoinedGpu& gpu) {
  return gpu.uuid.starts_with("MIG-");
}

std::string JoinedGpu::subject() const {
  const std::string& where = !pci.empty() ? pci : uuid;
  if (name.empty()) return where;
  return where.empty() ? name : fmt::format("{} at {}", name, where);
}

void join_gpus(MachineFacts& facts) {
  std::vector<JoinedGpu>& gpus = facts.gpus;
  gpus.clear();
  const auto gpu_of = [&](const std::string& pci, const std::string& uuid) -> JoinedGpu& {
    for (JoinedGpu& gpu : gpus) {
      if ((!pci.empty() && gpu.pci == pci) || (!uuid.empty() && gpu.uuid == uuid)) return gpu;
    }
    gpus.push_back({});
    gpus.back().pci = pci;
    gpus.back().uuid = uuid;
    return gpus.back();
  };
  for (const PciController& controller : facts.machine.gpus) {
    JoinedGpu& gpu = gpu_of(plain_address(controller.address), "");
    gpu.on_pci = &controller;
    gpu.minor = controller.minor;
  }
  for (const cuda::NvmlGpu& seen : facts.nvml.gpus) {
    // One that is lost tells nothing, and by its number alone it is nobody.
    if (seen.pci_bus_id.empty() && seen.uuid.empty()) continue;
    JoinedGpu& gpu = gpu_of(plain_address(seen.pci_bus_id), seen.uuid);
    gpu.in_nvml = &seen;
    gpu.uuid = seen.uuid;
    gpu.name = seen.name;
    if (seen.minor) gpu.minor = seen.minor;
  }
  const auto add_driver = [&](const std::vector<DeviceFacts>& devices, bool hidden) {
    for (const DeviceFacts& device : devices) {
      // The instances of a partitioned GPU have its address and names of their own.
      const bool instance = device.uuid.starts_with("MIG-");
      const std::string pci = instance ? "" : plain_address(device.pci_bus_id.value_or(""));
      JoinedGpu& gpu = gpu_of(pci, device.uuid);
      if (gpu.in_driver) continue;
      gpu.in_driver = &device;
      gpu.hidden = hidden;
      gpu.uuid = device.uuid;
      gpu.name = device.name;
      gpu.capability = capability_number(device.compute_capability);
      if (instance) take_from_parent(gpu, gpus, plain_address(device.pci_bus_id.value_or("")));
    }
  };
  add_driver(facts.driver.devices, false);
  if (facts.unrestricted) add_driver(facts.unrestricted->devices, true);
  // What an instance stands for is not another GPU.
  std::set<std::string> partitioned;
  for (const JoinedGpu& gpu : gpus) {
    if (is_instance(gpu)) partitioned.insert(gpu.pci);
  }
  std::erase_if(gpus, [&](const JoinedGpu& gpu) {
    return !gpu.in_driver && !gpu.pci.empty() && partitioned.contains(gpu.pci);
  });
  // Below /sys a container sees all GPUs of its host, those too that it was not given.
  if (!facts.machine.container.empty() && facts.driver.works()) {
    facts.not_given =
        std::erase_if(gpus, [](const JoinedGpu& gpu) { return !gpu.in_driver && !gpu.in_nvml; });
  }
  for (JoinedGpu& gpu : gpus) {
    if (!gpu.minor) continue;
    const std::string path = fmt::format("/dev/nvidia{}", *gpu.minor);
    for (const DeviceNode& node : facts.machine.nodes) {
      if (node.path == path) gpu.node = &node;
    }
  }
  std::ranges::stable_sort(gpus, {}, &JoinedGpu::pci);
}

}  // namespace launchgap::doctor
