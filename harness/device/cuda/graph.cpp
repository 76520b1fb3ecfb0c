#include "harness/device/cuda/graph.h"

#include "harness/core/errors.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::cuda {
namespace {

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
