#include "harness/run/devices.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/import/import_folder.h"
#include "harness/run/process.h"
#include "harness/run/rank.h"

namespace launchgap {
namespace {

/// What a process that looks for devices came to say.
struct ProbeResult {
  std::vector<DeviceFacts> devices;
  int found = 0;       // GPUs that there are
  std::string failed;  // why it did not come to its end; empty if it did
};

/// Looks for all devices of a backend, or for the one GPU with an index.
ProbeResult probe(const std::string& backend, double timeout_s, std::optional<int> index = {}) {
  ProbeResult answer;
  std::string asking;
  try {
    run_worker(
        job::Probe{backend, index},
        {},
        timeout_s,
        [] { return false; },
        [&](const Message& message) {
          if (const auto* found = std::get_if<message::Found>(&message))
            answer.found = found->count;
          if (const auto* next = std::get_if<message::Asking>(&message)) asking = next->call;
          if (const auto* devices = std::get_if<message::Devices>(&message))
            answer.devices = devices->devices;
        });
  } catch (const Error& error) {
    answer.failed = asking.empty() ? error.what() : fmt::format("{}, in {}", error.what(), asking);
  }
  return answer;
}

/// The GPUs, also those on which the driver ends or keeps whoever asks for them: each is asked for
/// by a process of its own then.
std::vector<DeviceFacts> probe_gpus(const std::string& backend, double timeout_s) {
  const ProbeResult all = probe(backend, timeout_s);
  if (all.failed.empty()) return all.devices;
  if (all.found == 0) throw Error(all.failed);
  std::vector<DeviceFacts> gpus;
  for (int i = 0; i < all.found; ++i) {
    const ProbeResult one = probe(backend, timeout_s, i);
    if (one.failed.empty()) {
      std::ranges::copy(one.devices, std::back_inserter(gpus));
      continue;
    }
    DeviceFacts& gpu = gpus.emplace_back(unknown_gpu(i));
    gpu.usable = false;
    gpu.reason = one.failed;
  }
  return gpus;
}

std::string first_line_after(const char* path, const std::string& prefix) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return "";
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

}  // namespace

MachineDevices find_devices(double timeout_s) {
  MachineDevices machine;
  for (const Backend* backend : all_backends()) {
    const std::string name(backend->name);
    if (!backend->is_gpu) {
      const ProbeResult host = probe(name, timeout_s);
      if (!host.failed.empty()) throw Error(host.failed);
      std::ranges::copy(host.devices, std::back_inserter(machine.devices));
      continue;
    }
    try {
      const std::vector<DeviceFacts> gpus = probe_gpus(name, timeout_s);
      if (gpus.empty()) machine.notes.push_back("The CUDA driver shows no GPU.");
      std::ranges::copy(gpus, std::back_inserter(machine.devices));
    } catch (const Error& error) {
      machine.notes.push_back(fmt::format("No GPU can be used: {}", error.what()));
    }
  }
  return machine;
}

void check_devices(const std::vector<DeviceFacts*>& devices,
                   double timeout_s,
                   const std::function<bool()>& stopped) {
  struct Check {
    DeviceFacts* device;
    std::unique_ptr<WorkerProcess> worker;
    std::string error;
  };
  std::vector<Check> checks;
  for (DeviceFacts* device : devices) {
    if (!is_usable_gpu(*device)) continue;
    const Json job = to_json(job::Initialise{device->backend, device->uuid});
    checks.push_back(
        {device, std::make_unique<WorkerProcess>(job, worker_environment(*device)), ""});
  }
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  const auto unusable = [](DeviceFacts& device, const std::string& reason) {
    device.usable = false;
    device.reason = reason;
  };
  while (!checks.empty() && !stopped()) {
    std::vector<WorkerProcess*> workers;
    for (const Check& check : checks) workers.push_back(check.worker.get());
    wait_for_any(workers, 100);
    std::erase_if(checks, [&](Check& check) {
      const bool ended = check.worker->ended().has_value();
      for (const Message& message : receive_messages(*check.worker)) {
        if (const auto* opened = std::get_if<message::Initialised>(&message))
          check.device->details["initialise_ms"] = fmt::format("{:.1f}", opened->milliseconds);
        if (const auto* failed = std::get_if<message::Failed>(&message))
          check.error = failed->error;
      }
      if (!ended && now_ns() <= until) return false;
      if (!ended) {
        check.worker->kill(5);
        unusable(*check.device, fmt::format("it could not be opened within {:.0f} s", timeout_s));
      } else if (!check.worker->ended()->clean()) {
        const std::string output = check.worker->last_output();
        unusable(*check.device,
                 !check.error.empty() ? check.error
                                      : fmt::format("opening it: the process {}{}{}",
                                                    check.worker->ended()->text(),
                                                    output.empty() ? "" : ": ",
                                                    output));
      }
      return true;
    });
  }
}

std::map<std::string, std::string> worker_environment(const DeviceFacts& device,
                                                      const std::vector<std::string>& beside) {
  std::vector<std::string> uuids = {device.uuid};
  std::ranges::copy(beside, std::back_inserter(uuids));
  return backend_of(device).environment(uuids);
}

namespace {

/// What there is instead of a device that there is not.
std::string no_device_text(const MachineDevices& machine, const std::string& word, bool is_index) {
  std::vector<std::string> names = {"all", "gpu", "host"}, gpus;
  for (const DeviceFacts& device : machine.devices) {
    if (!is_gpu(device)) continue;
    names.push_back(device.uuid);
    gpus.push_back(fmt::format("{} ({})", device.index, device.uuid));
  }
  const std::string near = is_index ? "" : did_you_mean(word, names);
  return fmt::format("there is no device '{}'{}{}",
                     printable(word, 60),
                     !near.empty()  ? near
                     : gpus.empty() ? ": choose all, gpu or host; no GPU is found here"
                                    : ": choose all, gpu, host or a GPU: ",
                     near.empty() ? fmt::format("{}", fmt::join(gpus, ", ")) : "");
}

}  // namespace

std::vector<DeviceFacts> select_devices(const MachineDevices& machine,
                                        const std::string& selection) {
  std::vector<DeviceFacts> selected;
  const auto add = [&](const DeviceFacts& device) {
    if (std::ranges::find(selected, device.uuid, &DeviceFacts::uuid) == selected.end())
      selected.push_back(device);
  };
  for (std::size_t begin = 0; begin <= selection.size();) {
    const std::size_t end = std::min(selection.find(',', begin), selection.size());
    const std::string word = selection.substr(begin, end - begin);
    begin = end + 1;
    const std::optional<int> index = number_of_text<int>(word);
    bool any = false;
    for (const DeviceFacts& device : machine.devices) {
      const bool gpu = is_gpu(device);
      if (word == "all" || (word == "gpu" && gpu) || (word == "host" && !gpu) ||
          (index && gpu && device.index == index) ||
          (word.size() >= 8 && device.uuid.starts_with(word))) {
        add(device);
        any = true;
      }
    }
    if (word == "gpu" && !any) {
      throw NoGpuError("a GPU was asked for and none can be used. {}",
                       machine.notes.empty() ? "" : machine.notes.front());
    }
    if (!any) throw UsageError(no_device_text(machine, word, index.has_value()));
  }
  return selected;
}

HostFacts host_facts() {
  HostFacts facts;
  facts.node = node_name(own_environment());
  if (const std::string id = first_line_after("/etc/machine-id", ""); !id.empty())
    facts.machine_id =
        recording::digest("launchgap " + id);  // itself it is to be kept to the machine
  facts.os = without_quotes(first_line_after("/etc/os-release", "PRETTY_NAME="));
  utsname system{};
  uname(&system);
  facts.kernel = system.release;
  const std::string cpu = first_line_after("/proc/cpuinfo", "model name");
  facts.cpu_model = cpu.empty() ? "unknown" : cpu.substr(cpu.find(':') + 2);
  facts.cores = allowed_cpus().size();
  facts.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::string governor =
      first_line_after("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
  if (!governor.empty()) facts.governor = governor;
  int nodes = 0;
  while (cpus_of_numa_node(nodes)) ++nodes;
  if (nodes > 0) facts.numa_nodes = nodes;
  return facts;
}

}  // namespace launchgap
