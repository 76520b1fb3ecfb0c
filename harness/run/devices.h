// The devices of this machine, found by processes of their own: a driver that crashes or hangs takes its probe
// with it, and nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/device/device.h"
#include "harness/record/schema.h"

namespace launchgap {

struct MachineDevices {
  std::vector<DeviceFacts> devices;  // the host first, then GPUs in the driver's order
  std::vector<std::string> notes;    // what could not be looked at, and why
};

/// Finds the devices. `check`: also opens each GPU once, in a process of its own, so that one that cannot be
/// used says why. Each process has `timeout_s` to answer.
MachineDevices find_devices(bool check, double timeout_s);

/// The environment of a worker on this device, which sees no other.
std::map<std::string, std::string> worker_environment(const DeviceFacts& device);

/// The devices that `--devices` names: all, gpu, host, a UUID or the beginning of one, an index of a GPU; or
/// several, with commas. Throws UsageError for what names nothing, and NoGpuError for `gpu` where none is usable.
std::vector<DeviceFacts> select_devices(const MachineDevices& machine, const std::string& selection);

/// Facts of this machine for session.json.
Json host_facts();

/// How long opening a device takes in a fresh process, and whether a process that keeps the driver open helps.
struct Initialisation {
  std::string device;
  double first_ms = 0;
  double again_ms = 0;
  double with_keeper_ms = 0;
  bool keeper_helps = false;
};

}  // namespace launchgap
