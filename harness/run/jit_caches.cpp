#include "harness/run/jit_caches.h"

#include <system_error>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/run/devices.h"
#include "harness/run/process.h"

namespace launchgap {

JitCaches::Warmed JitCaches::warm(const DeviceFacts& device,
                                  const ProcessConfig& process_config,
                                  double timeout_s) {
  if (!folders_) folders_.emplace("launchgap-jit-");
  if (folders_->path().empty()) return {};
  const std::filesystem::path folder = folders_->path() / device.uuid;
  std::error_code exists;
  if (!std::filesystem::create_directory(folder, exists)) return {folder, ""};
  try {
    run_worker(
        job::WarmJitCache{device.backend,
                          device.uuid,
                          ProcessConfig(process_config.family()).with(CodeLoading::jit_warming),
                          folder},
        worker_environment(device),
        timeout_s,
        [] { return stop_signal != 0; });
  } catch (const Error& error) {
    return {folder, error.what()};
  }
  return {folder, ""};
}

}  // namespace launchgap
