// The fake driver's graphs: capturing, making and launching them.
#include <algorithm>

#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

/// Any call of this file: body(call.process, call.lock, context, what graphs cost on its device).
template <typename Body>
Result with_graphs(Call& call, Body body) {
  return with_context(call, [&](Context& context) -> Result {
    const auto& costs = context.description.launch.graph;
    return costs ? body(context, *costs) : Result{kNotSupported};
  });
}

/// The call's end where each node adds to it.
double end_of(Call& call,
              Context& context,
              const Distribution& once,
              const Distribution& each,
              const GraphNodes& nodes) {
  const double each_ns = context.draw(each);
  return call.begin_ns + context.draw(once) + static_cast<double>(nodes.size()) * each_ns;
}

Result end_capture(Context& context, const Timeline& timeline, abi::Graph* graph) {
  CapturePoint* const found = context.capture_of(timeline);
  if (found == nullptr) return kIllegalState;
  const CapturePoint point = *found;
  Capture& capture = *point.capture;
  constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  if (capture.origin != &timeline) {
    capture.invalid = true;
    return kCaptureUnmatched;
  }
  if (capture.mode != kRelaxed && capture.thread != std::this_thread::get_id())
    return kCaptureWrongThread;
  capture.ended = true;
  std::erase_if(context.captures,
                [&](const auto& stream) { return stream.second.capture == point.capture; });
  if (capture.invalid) return kCaptureInvalidated;
  if (!capture.joined(point.after)) return kCaptureUnjoined;
  auto made = std::make_unique<fake::Graph>();
  made->nodes = std::make_shared<const GraphNodes>(std::move(capture.nodes));
  keep(context.graphs, std::move(made), graph);
  return kSuccess;
}

/// `result` becomes what cuGraphExecUpdate tells.
Result update(Call& call, abi::GraphExec executable, abi::Graph graph, int* result) {
  return with_graphs(call, [&](Context& context, const GraphDescription& costs) -> Result {
    fake::GraphExec* const old = find_in(context.executables, executable);
    const fake::Graph* const wanted = find_in(context.graphs, graph);
    if (old == nullptr || wanted == nullptr || result == nullptr) return kInvalidValue;
    const bool same = same_topology(*old->nodes, *wanted->nodes);
    *result = same ? kGraphUpdated : kGraphTopologyChanged;
    // Launches that are on their way go on with the old one.
    if (same) old->nodes = wanted->nodes;
    const double end = end_of(call, context, costs.update_ns, costs.update_node_ns, *wanted->nodes);
    return call.return_at(end, same ? kSuccess : kGraphUpdateFailure);
  });
}

}  // namespace

EXPORT Result cuStreamBeginCapture_v2(Stream stream, int mode) {
  Call call("cuStreamBeginCapture_v2");
  return with_graphs(call, [&](Context& context, const GraphDescription&) -> Result {
    Timeline* const timeline = context.find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    constexpr int kLastMode = 2;
    if (mode < 0 || mode > kLastMode) return kInvalidValue;
    if (timeline == &context.null_stream) return kCaptureUnsupported;
    if (context.capture_of(*timeline) != nullptr) return kIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->origin = timeline;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    context.captures[timeline] = {std::move(capture), {}};
    return kSuccess;
  });
}

EXPORT Result cuStreamEndCapture(Stream stream, abi::Graph* graph) {
  Call call("cuStreamEndCapture");
  return with_graphs(call, [&](Context& context, const GraphDescription&) -> Result {
    const Timeline* const timeline = context.find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    if (graph == nullptr) return kInvalidValue;
    *graph = nullptr;
    return end_capture(context, *timeline, graph);
  });
}

EXPORT Result cuGraphGetNodes(abi::Graph graph, abi::GraphNode* nodes, std::size_t* count) {
  Call call("cuGraphGetNodes");
  return with_graphs(call, [&](Context& context, const GraphDescription&) -> Result {
    const fake::Graph* const found = find_in(context.graphs, graph);
    if (found == nullptr || count == nullptr) return kInvalidValue;
    const GraphNodes& its = *found->nodes;
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i) {
        const void* const node = i < its.size() ? &its[i] : nullptr;
        nodes[i] = static_cast<abi::GraphNode>(const_cast<void*>(node));
      }
      *count = std::min(*count, its.size());
    } else {
      *count = its.size();
    }
    return kSuccess;
  });
}

EXPORT Result cuGraphInstantiateWithFlags(abi::GraphExec* executable,
                                          abi::Graph graph,
                                          unsigned long long flags) {
  Call call("cuGraphInstantiateWithFlags");
  return with_graphs(call, [&](Context& context, const GraphDescription& costs) -> Result {
    const fake::Graph* const found = find_in(context.graphs, graph);
    if (found == nullptr || executable == nullptr || flags != 0) return kInvalidValue;
    auto made = std::make_unique<fake::GraphExec>();
    made->nodes = found->nodes;
    keep(context.executables, std::move(made), executable);
    const double end =
        end_of(call, context, costs.instantiate_ns, costs.instantiate_node_ns, *found->nodes);
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuGraphUpload(abi::GraphExec executable, Stream stream) {
  Call call("cuGraphUpload");
  return with_graphs(call, [&](Context& context, const GraphDescription& costs) -> Result {
    fake::GraphExec* const found = find_in(context.executables, executable);
    if (found == nullptr) return kInvalidValue;
    const Timeline* const timeline = context.find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    if (context.invalidate_capture_of(*timeline)) return kCaptureUnsupported;
    found->on_device = true;
    const double end = end_of(call, context, costs.upload_ns, costs.upload_node_ns, *found->nodes);
    return call.return_at(end, kSuccess);
  });
}

EXPORT Result cuGraphLaunch(abi::GraphExec executable, Stream stream) {
  Call call("cuGraphLaunch");
  return with_running_stream(call, stream, [&](Context& context, Timeline& timeline) -> Result {
    if (!context.description.launch.graph) return kNotSupported;
    fake::GraphExec* const found = find_in(context.executables, executable);
    if (found == nullptr) return kInvalidValue;
    return call.process.launch(call, context, timeline, *found);
  });
}

EXPORT Result cuGraphExecUpdate_v2(abi::GraphExec executable,
                                   abi::Graph graph,
                                   GraphUpdateResult* result) {
  Call call("cuGraphExecUpdate_v2");
  if (result != nullptr) *result = {kGraphUpdateError, nullptr, nullptr};
  return update(call, executable, graph, result != nullptr ? &result->result : nullptr);
}

EXPORT Result cuGraphExecUpdate(abi::GraphExec executable,
                                abi::Graph graph,
                                abi::GraphNode* node,
                                int* result) {
  Call call("cuGraphExecUpdate");
  if (node != nullptr) *node = nullptr;
  return update(call, executable, graph, result);
}

EXPORT Result cuGraphDestroy(abi::Graph graph) {
  Call call("cuGraphDestroy");
  return with_graphs(call, [&](Context& context, const GraphDescription&) -> Result {
    return context.graphs.erase(graph) == 1 ? kSuccess : kInvalidValue;
  });
}

EXPORT Result cuGraphExecDestroy(abi::GraphExec executable) {
  Call call("cuGraphExecDestroy");
  return with_graphs(call, [&](Context& context, const GraphDescription&) -> Result {
    return context.executables.erase(executable) == 1 ? kSuccess : kInvalidValue;
  });
}

}  // namespace launchgap::fake
