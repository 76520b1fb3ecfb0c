// Graphs: what is captured does not run, and runs as often as the graph is launched.
#include <thread>

#include "harness/device/device.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

class GpuGraph : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    SKIP_UNLESS_SUPPORTED(device->capture(*stream, [] {}));
    increment = device->load(kernels::increment_kernel);
    const DeviceCounter counter(*device);
    count(*stream, counter);  // a first launch may load the kernel, which waits
    stream->wait();
  }
  void count(Stream& on, const DeviceCounter& counter, int times = 1) {
    for (int i = 0; i < times; ++i) launch(on, *increment, {1, 1}, counter.address());
  }
  std::unique_ptr<Graph> counting(const DeviceCounter& counter, int times = 1) {
    return device->capture(*stream, [&] { count(*stream, counter, times); });
  }
  void replay(ExecutableGraph& graph) {
    graph.launch(*stream);
    stream->wait();
  }
  /// Makes `waiting` wait for what `ahead` has so far.
  void order(Stream& ahead, Stream& waiting) {
    const auto passed = device->create_event(EventUse::order);
    ahead.record(*passed);
    waiting.wait_for(*passed);
  }
  std::unique_ptr<Kernel> increment;
};

TEST_F(GpuGraph, ACaptureRunsNothingAndTheGraphRunsAsOftenAsItIsLaunched) {
  const DeviceCounter counter(*device);
  auto graph = counting(counter, 3);
  stream->wait();
  EXPECT_EQ(counter.value(), 0u);
  EXPECT_EQ(graph->nodes(), 3u);
  const auto executable = device->instantiate(*graph);
  graph.reset();
  executable->upload(*stream);
  stream->wait();
  EXPECT_EQ(counter.value(), 0u);
  replay(*executable);
  EXPECT_EQ(counter.value(), 3u);
  const auto other = device->create_stream();
  executable->launch(*other);
  other->wait();
  EXPECT_EQ(counter.value(), 6u);
}

TEST_F(GpuGraph, RunsEveryNodeOfALongOne) {
  const DeviceCounter counter(*device);
  const auto graph = counting(counter, 1000);
  EXPECT_EQ(graph->nodes(), 1000u);
  const auto executable = device->instantiate(*graph);
  for (int i = 0; i < 20; ++i) executable->launch(*stream);
  stream->wait();
  EXPECT_EQ(counter.value(), 20'000u);
}

TEST_F(GpuGraph, IsInOrderWithWhatIsAroundIt) {
  const DeviceCounter counter(*device);
  const auto executable = device->instantiate(*counting(counter, 2));
  count(*stream, counter);
  executable->launch(*stream);
  stream->fill_bytes(counter.address(), 1, sizeof(unsigned));
  executable->launch(*stream);
  count(*stream, counter);
  stream->wait();
  EXPECT_EQ(counter.value(), 0x01010101u + 3);
}

TEST_F(GpuGraph, MayBeDestroyedWhileItRuns) {
  const auto spin = device->load(kernels::spin_kernel);
  const DeviceCounter counter(*device);
  {
    const auto executable = device->instantiate(*device->capture(*stream, [&] {
      launch(*stream, *spin, {1, 1}, 5'000'000ull, counter.address());
      count(*stream, counter);
    }));
    executable->launch(*stream);
  }
  stream->wait();
  EXPECT_EQ(counter.value(), 2u);
}

TEST_F(GpuGraph, KeepsTheArgumentsOfItsCapture) {
  const DeviceCounter first(*device), second(*device);
  void* address = first.address();
  const auto graph = device->capture(*stream, [&] {
    void* arguments[] = {&address};
    stream->launch(*increment, {1, 1}, arguments);
  });
  address = second.address();
  const auto executable = device->instantiate(*graph);
  replay(*executable);
  EXPECT_EQ(first.value(), 1u);
  EXPECT_EQ(second.value(), 0u);
}

TEST_F(GpuGraph, FollowsStreamsThatForkAndJoin) {
  const auto side = device->create_stream();
  const DeviceCounter value(*device), other(*device);
  const auto graph = device->capture(*stream, [&] {
    stream->fill_bytes(value.address(), 1, sizeof(unsigned));
    order(*stream, *side);
    count(*side, value);
    count(*stream, other);
    order(*side, *stream);
    count(*stream, value);
  });
  EXPECT_EQ(graph->nodes(), 4u);
  const auto executable = device->instantiate(*graph);
  for (unsigned i = 1; i <= 3; ++i) {
    replay(*executable);
    EXPECT_EQ(value.value(), 0x01010101u + 2);
    EXPECT_EQ(other.value(), i);
  }
  count(*side, other);
  side->wait();
  EXPECT_EQ(other.value(), 4u) << "the stream is free again";
}

TEST_F(GpuGraph, AnUpdateTakesOverArgumentsForLaunchesToComeAndRefusesAnotherShape) {
  const DeviceCounter before(*device), after(*device);
  const auto executable = device->instantiate(*counting(before));
  executable->launch(*stream);
  executable->update(*counting(after));
  executable->launch(*stream);
  executable->launch(*stream);
  stream->wait();
  EXPECT_EQ(before.value(), 1u) << "was launched before";
  EXPECT_EQ(after.value(), 2u);
  constexpr int kUpdateFailure = 910;
  EXPECT_TRUE(fails_with(kUpdateFailure, [&] { executable->update(*counting(before, 2)); }));
  const auto memset =
      device->capture(*stream, [&] { stream->fill_bytes(before.address(), 0, sizeof(unsigned)); });
  EXPECT_TRUE(fails_with(kUpdateFailure, [&] { executable->update(*memset); }));
  replay(*executable);
  EXPECT_EQ(before.value(), 1u) << "it is what it was";
  EXPECT_EQ(after.value(), 3u);
}

TEST_F(GpuGraph, AHostCountsItsKernels) {
  const auto spin = device->load(kernels::spin_kernel);
  SharedWords words(*device, 1);
  const auto executable = device->instantiate(*device->capture(*stream, [&] {
    for (int i = 0; i < 2; ++i) launch(*stream, *spin, {1, 1}, 10'000ull, words.on_device(0));
  }));
  executable->launch(*stream);
  EXPECT_TRUE(words.becomes(0, 2)) << "though nobody waits";
  stream->wait();
}

TEST_F(GpuGraph, ACaptureThatFailsLeavesTheStreamUsable) {
  const DeviceCounter counter(*device);
  EXPECT_THROW(device->capture(*stream, [] { throw WrongResult("not of CUDA's"); }), WrongResult);
  constexpr int kCaptureUnsupported = 900;
  const auto other = device->create_stream();
  const std::function<void()> forbidden[] = {
      [&] { stream->wait(); }, [&] { other->wait(); }, [&] { device->check(); }};
  for (const auto& call : forbidden) {
    EXPECT_TRUE(fails_with(kCaptureUnsupported, [&] { device->capture(*stream, call); }));
    count(*stream, counter);
    stream->wait();
  }
  EXPECT_EQ(counter.value(), 3u);
}

TEST_F(GpuGraph, OtherThreadsAndStreamsGoOnDuringACapture) {
  const DeviceCounter captured(*device), other(*device);
  const auto free = device->create_stream();
  const auto graph = device->capture(*stream, [&] {
    count(*stream, captured);
    count(*free, other);
    std::thread([&] {
      device->use_on_this_thread();
      free->wait();
      const auto buffer = device->allocate(1 << 20);
      const auto its_own = device->create_stream();
      count(*its_own, other);
      its_own->wait();
    }).join();
  });
  EXPECT_EQ(graph->nodes(), 1u);
  EXPECT_EQ(other.value(), 2u);
  EXPECT_EQ(captured.value(), 0u);
}

}  // namespace
}  // namespace launchgap
