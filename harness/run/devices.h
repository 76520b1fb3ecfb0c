// The devices of this machine, found by processes of their own: a driver that crashes or hangs
// takes its probe with it, and nothing else.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/device/facts.h"
#include "harness/record/session_record.h"

namespace launchgap {

struct MachineDevices {
  std::vector<DeviceFacts> devices;  // the host first, then GPUs in the driver's order
  std::vector<std::string> notes;    // what could not be looked at, and why
};

/// Finds the devices, without opening them. Each probe has `timeout_s` to answer.
MachineDevices find_devices(double timeout_s);

/// Opens each GPU once, in a process of its own and all at once, so that one that cannot be used
/// says why.
void check_devices(
    const std::vector<DeviceFacts*>& devices,
    double timeout_s,
    const std::function<bool()>& stopped = [] { return false; });

/// The environment of a worker on this device, which sees no other but those `beside` it, of the
/// same backend, by their UUIDs.
std::map<std::string, std::string> worker_environment(const DeviceFacts& device,
                                                      const std::vector<std::string>& beside = {});

/// The devices that `--devices` names: all, gpu, host, a UUID or the beginning of one, an index of
/// a GPU; or several, with commas. Throws UsageError for what names nothing, and NoGpuError for
/// `gpu` where there is none.
std::vector<DeviceFacts> select_devices(const MachineDevices& machine,
                                        const std::string& selection);

/// Facts of this machine for session.json.
HostFacts host_facts();

}  // namespace launchgap
