#include "harness/device/device.h"

#include "harness/core/errors.h"
#include "harness/device/cuda/cuda_device.h"
#include "harness/device/host/host_device.h"

namespace launchgap {

// What only some devices have; the others say so in words that fit the host, whose it is not.

void Stream::launch_cooperative(const Kernel&, LaunchShape, void**) {
  throw Unsupported("a task on the host's queue has no blocks that could wait for each other");
}
void Stream::launch_dependent(const Kernel&, LaunchShape, void**) {
  throw Unsupported("tasks on the host's queue run one after the other and never overlap");
}
void Stream::wait_for(Event&) {
  throw Unsupported("the host's queues do not wait for each other");
}
std::unique_ptr<Stream> Device::create_stream(const StreamOptions& options) {
  if (options.priority) throw Unsupported("the host's queues have no priorities");
  if (options.ordered_with_default) throw Unsupported("the host has no default queue");
  return create_stream();
}
std::unique_ptr<Stream> Device::default_stream() {
  throw Unsupported("the host has no default queue");
}
Device::Priorities Device::stream_priorities() {
  throw Unsupported("the host's queues have no priorities");
}
int Device::resident_blocks(const Kernel&, int) {
  throw Unsupported("a task on the host's queue has no blocks");
}
std::unique_ptr<Graph> Device::capture(Stream&, const std::function<void()>&) {
  throw Unsupported("the host's queue has no graphs");
}
std::unique_ptr<ExecutableGraph> Device::instantiate(const Graph&) {
  throw Unsupported("the host's queue has no graphs");
}
std::unique_ptr<NullLauncher> Device::runtime_launcher(RuntimeApi) {
  throw Unsupported("the CUDA runtime launches on GPUs alone");
}

DeviceFacts unknown_gpu(int index) {
  DeviceFacts facts;
  facts.backend = "cuda";
  facts.index = index;
  facts.name = "GPU";
  facts.uuid = "GPU-unknown-" + std::to_string(index);
  return facts;
}

std::vector<DeviceFacts> probe_devices(const std::string& backend, const ProbeOptions& options) {
  if (backend == "host") return {host::probe()};
  if (backend == "cuda") return cuda::probe(options);
  throw UsageError("there is no backend '" + backend + "': choose host or cuda");
}

std::unique_ptr<Device> open_device(const std::string& backend,
                                    const std::string& uuid,
                                    const OpenOptions& options) {
  if (backend == "host") return host::open();
  if (backend == "cuda") return cuda::open(uuid, options);
  throw UsageError("there is no backend '" + backend + "': choose host or cuda");
}

}  // namespace launchgap
