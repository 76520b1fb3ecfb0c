// What the driver compiled from PTX, kept for later processes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/core/process_config.h"
#include "harness/core/temporary_folder.h"
#include "harness/device/facts.h"

namespace launchgap {

/// A cache for each device, gone when the object is.
class JitCaches {
 public:
  struct Warmed {
    std::filesystem::path folder;  // empty if the system gives no temporary folder
    std::string problem;           // why it could not be filled, the first time; else empty
  };
  /// The device's folder, in which processes of CodeLoading::jit_cached find the kernels compiled;
  /// filled once, by a process of its own that has at most `timeout_s`. Where that fails, the cases
  /// that need it find nothing there and say so.
  Warmed warm(const DeviceFacts& device, const ProcessConfig& process_config, double timeout_s);

 private:
  std::optional<TemporaryFolder> folders_;
};

}  // namespace launchgap
