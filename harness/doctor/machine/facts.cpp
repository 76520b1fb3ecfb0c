#include "harness/doctor/machine/facts.h"

#include <algorithm>
#include <cctype>

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

}  // namespace

std::string Gpu::subject() const {
  const std::string where = !pci.empty() ? pci : uuid;
  if (name.empty()) return where;
  return where.empty() ? name : fmt::format("{} at {}", name, where);
}

void join_gpus(Facts& facts) {
  std::vector<Gpu>& gpus = facts.gpus;
  gpus.clear();
  const auto gpu_of = [&](const std::string& pci, const std::string& uuid) -> Gpu& {
    for (Gpu& gpu : gpus) {
      if ((!pci.empty() && gpu.pci == pci) || (!uuid.empty() && gpu.uuid == uuid)) return gpu;
    }
    gpus.push_back({});
    gpus.back().pci = pci;
    gpus.back().uuid = uuid;
    return gpus.back();
  };
  for (const PciController& controller : facts.machine.gpus)
    gpu_of(plain_address(controller.address), "").on_pci = &controller;
  for (const NvmlGpuFacts& seen : facts.nvml.gpus) {
    // One that is lost tells nothing, and by its number alone it is nobody.
    if (seen.pci_bus_id.empty() && seen.uuid.empty()) continue;
    Gpu& gpu = gpu_of(plain_address(seen.pci_bus_id), seen.uuid);
    gpu.in_nvml = &seen;
    gpu.uuid = seen.uuid;
    gpu.name = seen.name;
    gpu.minor = seen.minor;
  }
  const auto add_driver = [&](const std::vector<DeviceFacts>& devices, bool hidden) {
    for (const DeviceFacts& device : devices) {
      // The instances of a partitioned GPU have its address and names of their own.
      const bool instance = device.uuid.starts_with("MIG-");
      const std::string pci = instance ? "" : plain_address(device.pci_bus_id.value_or(""));
      Gpu& gpu = gpu_of(pci, device.uuid);
      if (gpu.in_driver) continue;
      gpu.in_driver = &device;
      gpu.hidden = hidden;
      gpu.uuid = device.uuid;
      gpu.name = device.name;
      gpu.capability = capability_number(device.compute_capability);
      if (instance) gpu.pci = plain_address(device.pci_bus_id.value_or(""));
    }
  };
  add_driver(facts.driver.devices, false);
  if (facts.unrestricted) add_driver(facts.unrestricted->devices, true);
  for (Gpu& gpu : gpus) {
    if (!gpu.minor) continue;
    const std::string path = fmt::format("/dev/nvidia{}", *gpu.minor);
    for (const DeviceNode& node : facts.machine.nodes) {
      if (node.path == path) gpu.node = &node;
    }
  }
  std::ranges::stable_sort(gpus, {}, &Gpu::pci);
}

}  // namespace launchgap::doctor
