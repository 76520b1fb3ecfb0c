// Which processes compute on any GPU, by NVML, asked from outside of this process.
#pragma once

#include <memory>
#include <set>
#include <sys/types.h>

#include "harness/run/process.h"

namespace launchgap::doctor {

/// A process that asks NVML four times a second until this ends. Where NVML does not work it tells
/// nothing. In a container the numbers can be those of another name space.
class ComputingProcesses {
 public:
  ComputingProcesses();
  /// The ids of the last answer; does not wait.
  std::set<pid_t> now();

 private:
  std::unique_ptr<WorkerProcess> worker_;
  std::set<pid_t> last_;
};

/// The worker's side: ends when its parent does.
void tell_computing_processes();

}  // namespace launchgap::doctor
