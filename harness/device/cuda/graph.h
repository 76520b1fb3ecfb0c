// CUDA graphs, made by capturing what is launched on a stream.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/cuda/stream.h"
#include "harness/device/graph.h"

namespace launchgap::cuda {

/// Runs `work` while the stream is being captured. Throws what `work` throws, with the capture
/// ended; Unsupported where the driver has no graphs.
std::unique_ptr<Graph> capture_graph(const Driver& driver,
                                     CudaStream& stream,
                                     const std::function<void()>& work);

std::unique_ptr<ExecutableGraph> instantiate_graph(const Driver& driver, const Graph& graph);

}  // namespace launchgap::cuda
