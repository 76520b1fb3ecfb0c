// A process that keeps the driver open for a session, where that helps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/device/facts.h"
#include "harness/record/session_record.h"
#include "harness/run/process.h"

namespace launchgap {

/// Without persistence mode a GPU is shut down when its last user ends, and every new process waits
/// for it to start again. A process that keeps the driver open spares that, where it does.
class DriverKeeper {
 public:
  /// Times how long it takes to open the first usable GPU, without the process and with it, and
  /// keeps the process if it helps. Returns what that came to, for session.json; null where there
  /// is no GPU that can be used. Waits at most `timeout_s` for each answer.
  std::optional<Initialisation> start(const std::vector<DeviceFacts>& devices, double timeout_s);
  void stop() { process_.reset(); }

 private:
  std::unique_ptr<WorkerProcess> process_;
};

}  // namespace launchgap
