#include "harness/doctor/machine/computing_processes.h"

#include <unistd.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/nvml_inventory.h"

namespace launchgap::doctor {

ComputingProcesses::ComputingProcesses() {
  try {
    worker_ = std::make_unique<WorkerProcess>(Json{{"task", "doctor-computing"}},
                                              std::map<std::string, std::string>());
  } catch (const Error&) {
    // Then nothing is known, as without NVML.
  }
}

std::set<pid_t> ComputingProcesses::now() {
  if (!worker_) return {};
  for (const Json& message : worker_->receive()) {
    if (const auto pids = maybe<std::vector<pid_t>>(message, "computing"))
      last_ = std::set(pids->begin(), pids->end());
  }
  return last_;
}

void tell_computing_processes() {
  constexpr useconds_t kEvery = 250'000;
  for (;;) {
    Json pids = Json::array();
    for (const cuda::NvmlGpu& gpu : cuda::nvml_inventory().gpus) {
      for (const cuda::GpuProcess& process : gpu.processes) pids.push_back(process.pid);
    }
    send_message({{"computing", pids}});
    usleep(kEvery);
  }
}

}  // namespace launchgap::doctor
