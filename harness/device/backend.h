// Kinds of device: which there are, what every device of a kind can, and how one is found and
// opened. Code asks whether a device has a capability (`Capability`), and not which kind it is.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/process_config.h"
#include "harness/device/facts.h"

namespace launchgap {

class Collective;
class Device;

/// What not every kind of device can.
enum class Capability {
  launch_in_several_ways,  // by more APIs than one
  launch_cooperatively,    // all blocks of a kernel at once
  launch_dependently,      // a kernel may begin before the one ahead of it has ended
  pass_any_arguments,      // kernels with arguments of any size
  run_many_blocks,         // kernels of more than one block
  load_code,               // kernels are brought to the device, and that takes time
  choose_wait,             // how a thread waits is a setting of the process
  wait_for_streams,        // streams wait for each other
  share_streams,           // several threads launch into one stream
  use_default_stream,      // a stream that others take turns with
  use_priorities,          // streams have priorities
  make_graphs,             // kernels and their order, recorded to be launched together
  wait_for_all,            // for all streams at once, by Device::check()
  share_with_processes,    // several processes work on it, and it takes turns between them
};
inline constexpr std::size_t kCapabilityCount =
    static_cast<std::size_t>(Capability::share_with_processes) + 1;

/// How devices are looked for by a process that a driver may end.
struct ProbeOptions {
  std::optional<int> index;                     // only this GPU
  std::function<void(int)> found = [](int) {};  // how many GPUs there are
  /// What is asked next, before it is asked: the driver's call.
  std::function<void(const char*)> asking = [](const char*) {};
};

/// Settings of a whole process, made before the device is opened.
struct OpenOptions {
  WaitMode wait = WaitMode::spin;
  CodeLoading loading = CodeLoading::unchanged;
  std::string jit_cache;  // a folder
  std::string code;       // of the host's libraries (code_levels.h); empty: what they choose
};

/// Rough speeds, for estimates of time.
struct ExpectedSpeed {
  double matmul_flops = 1;
  double convolution_flops = 1;
  bool per_processor = false;        // these are of one processor, and not of the device
  double allocated_bytes_per_s = 1;  // written for the first time
  double start_seconds = 0.5;        // of a process: libraries, context, warm-up
  double launches = 1;               // what a case of launches takes, by that of a GPU
};

/// Who records what a device does in a traced process.
enum class RecordedBy {
  cupti,
  backend,  // it keeps records of its own
};

struct Backend {
  std::string_view name;          // in records: "cuda", "host"
  bool is_gpu = true;             // there may be several, each with an index, beside the host
  std::string_view processors;    // "SMs", "CPUs"
  std::string_view launch_api;    // the way by which its launches go, of the axis `api`
  std::string_view launcher;      // the same in words: "CUDA driver API"
  bool runs_alone = false;        // its work takes the CPUs that others launch from
  bool stream_takes_cpu = false;  // each stream works on a CPU of its own
  bool launches_from_first_cpu = false;  // since its own threads have the last ones
  RecordedBy recorded_by = RecordedBy::cupti;
  double warm_up_s = 0;  // how long it works until its clock is up
  std::vector<std::string> matmul_types, convolution_types;  // of the axis `type`, to be asked for
  std::vector<std::string> matmul_libraries;                 // of the axis `library`
  std::vector<std::string> convolution_interfaces;           // by which convolutions are asked for
  ExpectedSpeed expected;
  /// Why it cannot, for the reader of a case; empty where it can.
  std::array<std::string_view, kCapabilityCount> why_not;

  /// Variables for a process that uses this device and sees no other.
  std::map<std::string, std::string> (*environment)(std::span<const std::string> uuids) = nullptr;
  std::vector<DeviceFacts> (*probe)(const ProbeOptions& options) = nullptr;
  std::unique_ptr<Device> (*open)(const std::string& uuid, const OpenOptions& options) = nullptr;
  std::unique_ptr<Collective> (*collective)(std::span<Device* const> devices) = nullptr;  // or none

  bool can(Capability what) const { return why_not[static_cast<std::size_t>(what)].empty(); }
};

/// All of them; the host first.
std::span<const Backend* const> all_backends();
/// Throws UsageError that lists them.
const Backend& backend_named(std::string_view name);
/// Of a device in records too, which another launchgap may have written: a GPU of which nothing is
/// known, if this one has no such backend.
const Backend& backend_of(const DeviceFacts& facts);
/// The backend of a device that a user names by its UUID, or by "host".
const Backend& backend_of_uuid(std::string_view uuid);

inline bool is_gpu(const DeviceFacts& facts) {
  return backend_of(facts).is_gpu;
}
inline bool is_usable_gpu(const DeviceFacts& facts) {
  return is_gpu(facts) && facts.usable;
}
inline bool can(const DeviceFacts& facts, Capability what) {
  return backend_of(facts).can(what);
}
/// Floating-point operations in a second, expected of this device.
double expected_matmul_flops(const DeviceFacts& facts);
double expected_convolution_flops(const DeviceFacts& facts);
/// Throws Unsupported, with the reason, where the device cannot.
void need(const DeviceFacts& facts, Capability what);

/// Every device that can be seen, without keeping any of them open. A GPU of which the driver says
/// too little is there, not usable, and has the reason.
std::vector<DeviceFacts> probe_devices(std::string_view backend, const ProbeOptions& options = {});

/// Opens a device for use by this process. Throws Error if there is no such device or it cannot be
/// used.
std::unique_ptr<Device> open_device(std::string_view backend,
                                    const std::string& uuid,
                                    const OpenOptions& options = {});

}  // namespace launchgap
