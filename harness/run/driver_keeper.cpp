#include "harness/run/driver_keeper.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/device/backend.h"
#include "harness/run/devices.h"

namespace launchgap {
namespace {

/// It stays if opening a GPU takes less than this share of the time without it.
constexpr double kHelpfulShare = 0.8;
constexpr std::int64_t kLongestStartNs = 10'000'000'000;

/// The environment of a process that sees the GPUs of this session and no others.
std::map<std::string, std::string> visible_gpus(const Backend& backend,
                                                const std::vector<DeviceFacts>& devices) {
  std::vector<std::string> uuids;
  for (const DeviceFacts& device : devices) {
    if (is_usable_gpu(device)) uuids.push_back(device.uuid);
  }
  return backend.environment(uuids);
}

double open_once(const DeviceFacts& gpu, double timeout_s) {
  double milliseconds = 0;
  run_worker(
      job::Initialise{gpu.backend, gpu.uuid},
      worker_environment(gpu),
      timeout_s,
      [] { return stop_signal != 0; },
      [&](const Message& message) {
        if (const auto* opened = std::get_if<message::Initialised>(&message))
          milliseconds = opened->milliseconds;
      });
  return milliseconds;
}

}  // namespace

std::optional<Initialisation> DriverKeeper::start(const std::vector<DeviceFacts>& devices,
                                                  double timeout_s) {
  const auto gpu = std::ranges::find_if(devices, is_usable_gpu);
  if (gpu == devices.end()) return std::nullopt;
  Initialisation record;
  record.device_id = gpu->uuid;
  try {
    const double again = open_once(*gpu, timeout_s);
    process_ = std::make_unique<WorkerProcess>(to_json(job::HoldDriverOpen{gpu->backend}),
                                               visible_gpus(backend_of(*gpu), devices));
    for (const std::int64_t until = now_ns() + kLongestStartNs;
         now_ns() < until && !process_->ended() && !stop_signal;) {
      wait_for_any({process_.get()}, 100);
      if (!process_->receive().empty()) break;
    }
    const double with_keeper = open_once(*gpu, timeout_s);
    const bool helps = with_keeper < kHelpfulShare * again && !process_->ended();
    if (!helps) stop();
    const auto first = gpu->details.find("initialise_ms");
    record.first_ms = first == gpu->details.end() ? 0 : std::strtod(first->second.c_str(), nullptr);
    record.again_ms = again;
    record.with_keeper_ms = with_keeper;
    record.keeper = helps;
  } catch (const Error& error) {
    stop();
    record.error = error.what();
  }
  return record;
}

}  // namespace launchgap
