// Graphs of the fake driver: what a capture collects, and their launch as one entry of a stream.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "tests/fake_cuda/meeting.h"
#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/timeline.h"

namespace launchgap::fake {

/// What a launch does on the device, as it goes into a stream or into a graph.
struct Work {
  // What a trace calls it: one of the two.
  std::optional<KernelShape> kernel;
  std::optional<TransferEvent> transfer;
  double share = 1;       // of the time of an empty kernel
  double work_ns = 0;     // beside that
  double clocked_ns = 0;  // and whatever the device's speed is
  double overlap_ns = 0;  // it may begin so much before the end of what is ahead of it
  bool polled = false;    // a host may see its effect without calling the driver
  std::optional<Attendance> attendance;  // it waits for kernels of other devices
  Operation operation;
};

struct Context;
class Process;

/// What the driver answers where launchgap does not ask which of them it was.
enum CaptureResult : abi::Result {
  kIllegalState = 401,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

struct GraphNode {
  Work work;
  std::vector<std::size_t> after;  // nodes by number, all of them smaller
};
using GraphNodes = std::vector<GraphNode>;

struct Graph {
  std::shared_ptr<const GraphNodes> nodes;
};

struct GraphExec {
  std::shared_ptr<const GraphNodes> nodes;
  bool on_device = false;  // uploaded, or launched before
};

/// Whether the same kernels depend on each other in the same way.
bool same_topology(const GraphNodes& one, const GraphNodes& other);

/// A capture, from its start until its end.
struct Capture {
  const Timeline* origin = nullptr;
  int mode = 0;
  std::thread::id thread;
  bool invalid = false;
  bool ended = false;
  GraphNodes nodes;

  void add(Work work, std::vector<std::size_t>& after);
  /// Whether every node comes before one of `last`.
  bool joined(const std::vector<std::size_t>& last) const;
};

/// Where a stream or an event is in a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> after;  // what comes next depends on these nodes
};

/// One launch of a graph.
class GraphRun : public Batch {
 public:
  GraphRun(Process& process,
           Context& context,
           std::shared_ptr<const GraphNodes> nodes,
           std::uint64_t seed)
      : process_(process), context_(context), nodes_(std::move(nodes)), seed_(seed) {}

  /// For a listener, of each node that is a kernel.
  std::vector<std::shared_ptr<KernelTimes>> times;

  double duration_ns() override;
  void settle(double begin_ns) override;

  bool has_effect() const;
  bool polled() const;
  /// Does what the nodes do, in their order.
  void execute() const;

 private:
  struct Span {
    double begin_ns = 0;
    double end_ns = 0;
  };
  /// Draws the times of every node: when somebody waits, since drawing takes time itself.
  void plan();

  Process& process_;
  Context& context_;
  std::shared_ptr<const GraphNodes> nodes_;
  std::uint64_t seed_;
  std::vector<Span> spans_;  // from the graph's begin
  double duration_ns_ = 0;
};

}  // namespace launchgap::fake
