#include "harness/device/device.h"

#include "harness/core/errors.h"
#include "harness/device/cuda/cuda_device.h"
#include "harness/device/host/host_device.h"

namespace launchgap {

std::vector<DeviceFacts> probe_devices(const std::string& backend) {
  if (backend == "host") return {host::probe()};
  if (backend == "cuda") return cuda::probe();
  throw UsageError("there is no backend '" + backend + "': choose host or cuda");
}

std::unique_ptr<Device> open_device(const std::string& backend, const std::string& uuid) {
  if (backend == "host") return host::open();
  if (backend == "cuda") return cuda::open(uuid);
  throw UsageError("there is no backend '" + backend + "': choose host or cuda");
}

}  // namespace launchgap
