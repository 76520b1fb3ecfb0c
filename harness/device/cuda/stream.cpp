#include "harness/device/cuda/stream.h"

#include "harness/core/errors.h"
#include "harness/device/cuda/kernel.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::cuda {
namespace {

abi::Function function_of(const Kernel& kernel) {
  return static_cast<const CudaKernel&>(kernel).function();
}

class CudaGraph : public Graph {
 public:
  CudaGraph(const Driver& driver, abi::Graph handle) : handle(handle), driver_(driver) {}
  ~CudaGraph() override { driver_.cuGraphDestroy(handle); }
  std::size_t nodes() const override {
    std::size_t count = 0;
    CHECK_CUDA(driver_, cuGraphGetNodes(handle, nullptr, &count));
    return count;
  }
  abi::Graph handle;

 private:
  const Driver& driver_;
};

abi::Stream handle_of(Stream& stream) {
  return static_cast<CudaStream&>(stream).handle;
}
abi::Graph handle_of(const Graph& graph) {
  return static_cast<const CudaGraph&>(graph).handle;
}

class CudaExecutableGraph : public ExecutableGraph {
 public:
  CudaExecutableGraph(const Driver& driver, const Graph& graph) : driver_(driver) {
    CHECK_CUDA(driver_, cuGraphInstantiateWithFlags(&handle_, handle_of(graph), 0));
  }
  ~CudaExecutableGraph() override { driver_.cuGraphExecDestroy(handle_); }
  void upload(Stream& stream) override {
    CHECK_CUDA(driver_, cuGraphUpload(handle_, handle_of(stream)));
  }
  void launch(Stream& stream) override {
    insert_delay();
    CHECK_CUDA(driver_, cuGraphLaunch(handle_, handle_of(stream)));
  }
  void update(const Graph& graph) override {
    if (driver_.cuGraphExecUpdate_v2) {
      abi::GraphUpdateResult result{};
      CHECK_CUDA(driver_, cuGraphExecUpdate_v2(handle_, handle_of(graph), &result));
    } else if (driver_.cuGraphExecUpdate) {
      abi::GraphNode node = nullptr;
      int result = 0;
      CHECK_CUDA(driver_, cuGraphExecUpdate(handle_, handle_of(graph), &node, &result));
    } else {
      throw Unsupported("the driver cannot update graphs (it came with CUDA 10.2)");
    }
  }

 private:
  const Driver& driver_;
  abi::GraphExec handle_ = nullptr;
};

}  // namespace

CudaEvent::CudaEvent(const Driver& driver, unsigned flags) : driver_(driver) {
  CHECK_CUDA(driver_, cuEventCreate(&handle, flags));
}
CudaEvent::~CudaEvent() {
  driver_.cuEventDestroy_v2(handle);
}
void CudaEvent::wait() {
  CHECK_CUDA(driver_, cuEventSynchronize(handle));
}

CudaStream::CudaStream(const Driver& driver, const StreamOptions& options, bool cooperative)
    : driver_(driver), cooperative_(cooperative) {
  const unsigned flags =
      options.ordered_with_default ? abi::kStreamDefault : abi::kStreamNonBlocking;
  if (options.priority) {
    CHECK_CUDA(driver_, cuStreamCreateWithPriority(&handle, flags, *options.priority));
  } else {
    CHECK_CUDA(driver_, cuStreamCreate(&handle, flags));
  }
}
CudaStream::~CudaStream() {
  if (handle) driver_.cuStreamDestroy_v2(handle);
}

void CudaStream::launch(const Kernel& kernel, LaunchShape shape, void** arguments) {
  insert_delay();
  const abi::Function function = function_of(kernel);
  if (driver_.cuLaunchKernelEx) {
    const abi::LaunchConfig config{
        shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes, handle, nullptr, 0};
    CHECK_CUDA(driver_, cuLaunchKernelEx(&config, function, arguments, nullptr));
  } else {
    CHECK_CUDA(driver_,
               cuLaunchKernel(function,
                              shape.blocks,
                              1,
                              1,
                              shape.threads,
                              1,
                              1,
                              shape.shared_bytes,
                              handle,
                              arguments,
                              nullptr));
  }
}

/// Only where there is cuLaunchKernelEx.
abi::Result CudaStream::launch_with(abi::LaunchAttributeId which,
                                    const Kernel& kernel,
                                    LaunchShape shape,
                                    void** arguments) {
  abi::LaunchAttribute attribute{};
  attribute.id = which;
  attribute.value.flag = 1;
  const abi::LaunchConfig config{
      shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes, handle, &attribute, 1};
  return driver_.cuLaunchKernelEx(&config, function_of(kernel), arguments, nullptr);
}

void CudaStream::launch_cooperative(const Kernel& kernel, LaunchShape shape, void** arguments) {
  insert_delay();
  abi::Result code = abi::kNotSupported;
  if (!cooperative_) {
    // What the driver would answer is written nowhere.
  } else if (driver_.cuLaunchKernelEx) {
    code = launch_with(abi::kLaunchCooperative, kernel, shape, arguments);
  } else if (driver_.cuLaunchCooperativeKernel) {
    code = driver_.cuLaunchCooperativeKernel(function_of(kernel),
                                             shape.blocks,
                                             1,
                                             1,
                                             shape.threads,
                                             1,
                                             1,
                                             shape.shared_bytes,
                                             handle,
                                             arguments);
  }
  if (code == abi::kNotSupported)
    throw Unsupported("the GPU or its driver has no cooperative launches (compute capability 6.0)");
  driver_.check(code, "cuLaunchKernelEx with CU_LAUNCH_ATTRIBUTE_COOPERATIVE", __FILE__, __LINE__);
}

void CudaStream::launch_dependent(const Kernel& kernel, LaunchShape shape, void** arguments) {
  insert_delay();
  const abi::Result code = driver_.cuLaunchKernelEx
                               ? launch_with(abi::kLaunchProgrammatic, kernel, shape, arguments)
                               : abi::kNotSupported;
  if (code == abi::kNotSupported) {
    throw Unsupported(
        "the GPU or its driver has no programmatic dependent launch (compute capability 9.0)");
  }
  driver_.check(code,
                "cuLaunchKernelEx with CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
                __FILE__,
                __LINE__);
}

void CudaStream::wait() {
  CHECK_CUDA(driver_, cuStreamSynchronize(handle));
}
void CudaStream::record(Event& event) {
  CHECK_CUDA(driver_, cuEventRecord(static_cast<CudaEvent&>(event).handle, handle));
}
void CudaStream::wait_for(Event& event) {
  CHECK_CUDA(driver_, cuStreamWaitEvent(handle, static_cast<CudaEvent&>(event).handle, 0));
}
void CudaStream::fill_bytes(void* address, unsigned char value, std::size_t bytes) {
  CHECK_CUDA(driver_, cuMemsetD8Async(as_device(address), value, bytes, handle));
}
void CudaStream::copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) {
  switch (direction) {
    case CopyDirection::device_to_device:
      CHECK_CUDA(driver_, cuMemcpyDtoDAsync_v2(as_device(to), as_device(from), bytes, handle));
      return;
    case CopyDirection::host_to_device:
      CHECK_CUDA(driver_, cuMemcpyHtoDAsync_v2(as_device(to), from, bytes, handle));
      return;
    case CopyDirection::device_to_host:
      CHECK_CUDA(driver_, cuMemcpyDtoHAsync_v2(to, as_device(from), bytes, handle));
      return;
  }
}

std::unique_ptr<Graph> capture_graph(const Driver& driver,
                                     CudaStream& stream,
                                     const std::function<void()>& work) {
  if (!driver.cuStreamBeginCapture_v2 || !driver.cuStreamEndCapture || !driver.cuGraphGetNodes ||
      !driver.cuGraphInstantiateWithFlags || !driver.cuGraphUpload || !driver.cuGraphLaunch ||
      !driver.cuGraphDestroy || !driver.cuGraphExecDestroy) {
    throw Unsupported("the driver is too old for graphs as launchgap makes them (CUDA 11.4)");
  }
  const abi::Result begun = driver.cuStreamBeginCapture_v2(stream.handle, abi::kCaptureThreadLocal);
  if (begun == abi::kNotSupported) throw Unsupported("the driver has no graphs for this GPU");
  driver.check(begun, "cuStreamBeginCapture_v2", __FILE__, __LINE__);
  abi::Graph graph = nullptr;
  try {
    work();
  } catch (...) {
    driver.cuStreamEndCapture(stream.handle, &graph);
    if (graph) driver.cuGraphDestroy(graph);
    throw;
  }
  CHECK_CUDA(driver, cuStreamEndCapture(stream.handle, &graph));
  return std::make_unique<CudaGraph>(driver, graph);
}

std::unique_ptr<ExecutableGraph> instantiate_graph(const Driver& driver, const Graph& graph) {
  return std::make_unique<CudaExecutableGraph>(driver, graph);
}

}  // namespace launchgap::cuda
