// launchgap list
#include <set>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/described_command.h"
#include "harness/cli/json_output.h"
#include "harness/cli/mistakes.h"
#include "harness/core/plan.h"
#include "harness/core/say.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/benchmark.h"
#include "harness/record/fields.h"
#include "harness/record/schema.h"
#include "harness/run/device_lock.h"
#include "harness/run/devices.h"

namespace launchgap::cli {
namespace {

constexpr double kTimeoutS = 60;

/// Opens the GPUs that no session is measuring, to see whether they can be used; the others stay
/// undisturbed.
void check_idle_devices(MachineDevices& machine) {
  std::vector<DeviceLock> locks;
  std::vector<DeviceFacts*> idle;
  for (DeviceFacts& device : machine.devices) {
    if (!is_gpu(device)) continue;
    try {
      locks.emplace_back(device.uuid);
      idle.push_back(&device);
    } catch (const Error& error) {
      device.details["busy"] = error.what();
      machine.notes.push_back(
          fmt::format("{} ({}) was not opened: {}", device.name, device.index, error.what()));
    }
  }
  check_devices(idle, kTimeoutS);
}

void list_devices(const MachineDevices& machine, Json* json) {
  if (json) {
    (*json)["devices"] = Json::array();
    for (const DeviceFacts& device : machine.devices)
      (*json)["devices"].push_back(fields_to_json(device));
    (*json)["notes"] = machine.notes;
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"device", "index", "capability", "memory", "units", "clock", "driver", "usable", "uuid"}};
  for (const DeviceFacts& device : machine.devices) {
    const auto number = [](const auto& value, const std::string& unit) {
      return value ? fmt::format("{}{}", *value, unit) : std::string("–");
    };
    rows.push_back(
        {device.name,
         is_gpu(device) ? std::to_string(device.index) : device.backend,
         device.compute_capability.value_or("–"),
         device.memory_bytes ? bytes_text(static_cast<double>(*device.memory_bytes)) : "–",
         number(device.multiprocessors, fmt::format(" {}", backend_of(device).processors)),
         number(device.clock_mhz, " MHz"),
         device.driver_version ? "CUDA " + *device.driver_version : "–",
         device.details.contains("busy") ? "in use"
         : device.usable                 ? "yes"
                                         : "no",
         device.uuid});
  }
  answer_text(table(rows));
  for (const DeviceFacts& device : machine.devices) {
    if (!device.usable)
      answer("{}\n",
             wrapped(fmt::format("{} ({}): {}", device.name, device.index, device.reason), 0));
    if (device.simulated)
      answer("{} ({}): simulated by a fake CUDA driver\n", device.name, device.index);
  }
  for (const std::string& note : machine.notes) answer("{}\n", wrapped(note, 0));
}

void list_benchmarks(const MachineDevices& machine, Profile profile, Json* json) {
  if (json) (*json)["benchmarks"] = Json::array();
  for (const Benchmark& benchmark : all_benchmarks()) {
    // One device of a kind stands for all of its kind: the axes depend on nothing else.
    std::set<std::string> backends;
    std::vector<std::string> names;
    for (const DeviceFacts& device : machine.devices) {
      if (!backends.insert(device.backend).second) continue;
      for (const CaseName& name : benchmark.cases(profile, device)) names.push_back(name.text());
    }
    if (json) {
      Json axes = Json::object();
      for (const Axis& axis : benchmark.axes) axes[axis.name] = axis.meaning;
      (*json)["benchmarks"].push_back({{"name", benchmark.name},
                                       {"question", benchmark.question},
                                       {"axes", axes},
                                       {"cases", names}});
      continue;
    }
    answer("{}\n", wrapped(fmt::format("{}: {}", benchmark.name, benchmark.question), 0));
    for (const Axis& axis : benchmark.axes) {
      const std::string head = fmt::format("    {}: ", axis.name);
      answer("{}{}\n", head, wrapped(axis.meaning, head.size()));
    }
    for (const std::string& name : names) answer("  {}\n", name);
  }
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  struct Options {
    std::string what;
    std::string profile = "quick";
    JsonOutput json;
  };
  CLI::App* const command = app.add_subcommand("list", "Show devices and benchmarks");
  auto options = std::make_shared<Options>();
  static const std::vector<std::string> kKinds = {"devices", "benchmarks"};
  show_values(command->add_option("what", options->what, "devices or benchmarks; both if left out"),
              kKinds);
  show_values(command->add_option("--profile", options->profile, "Whose cases to list"),
              profile_names())
      ->capture_default_str();
  options->json.add_option(*command, "What there is");
  command->footer("Example: launchgap list devices --json");
  command->callback([options, &action] {
    action = [options] {
      // `list --json devices` means devices, and no file of that name.
      if (options->what.empty()) options->what = options->json.take_back();
      if (!options->what.empty()) check_word(options->what, kKinds);
      options->json.begin();
      const Profile profile = parse_profile(options->profile);
      MachineDevices machine = find_devices(kTimeoutS);
      if (options->what != "benchmarks") check_idle_devices(machine);
      Json json = new_record("list");
      Json* const out = options->json.asked() ? &json : nullptr;
      if (options->what != "benchmarks") list_devices(machine, out);
      if (options->what.empty() && !out) answer_text("\n");
      if (options->what != "devices") list_benchmarks(machine, profile, out);
      options->json.write(json);
      return ExitCode::done;
    };
  });
}

}  // namespace launchgap::cli
