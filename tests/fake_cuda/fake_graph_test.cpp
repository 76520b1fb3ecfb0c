// Captures and graphs of the fake driver.
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

// What the driver answers beside the codes that launchgap tells apart. Source: cuda.h.
constexpr Result kIllegalState = 401, kMerge = 902, kUnmatched = 903, kUnjoined = 904,
                 kIsolation = 905, kImplicit = 906, kCapturedEvent = 907, kWrongThread = 908;

class FakeGraph : public FakeCuda {
 public:
  void begin_capture(Stream on) {
    ASSERT_EQ(cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal), kSuccess);
  }

  Graph end_capture(Stream on) {
    Graph graph = nullptr;
    EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kSuccess);
    return graph;
  }

  template <typename Body>
  Graph captured(Stream on, Body work) {
    begin_capture(on);
    work();
    return end_capture(on);
  }

  GraphExec instantiated(Graph graph) {
    GraphExec executable = nullptr;
    EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), kSuccess);
    return executable;
  }

  std::size_t nodes(Graph graph) {
    std::size_t count = 0;
    EXPECT_EQ(cu.cuGraphGetNodes(graph, nullptr, &count), kSuccess);
    return count;
  }

  void replay(GraphExec executable, Stream on) {
    ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  }

  /// Makes `waiting` wait for what `ahead` has so far.
  void order(Stream ahead, Stream waiting) {
    const auto passed = event();
    ASSERT_EQ(cu.cuEventRecord(passed, ahead), kSuccess);
    ASSERT_EQ(cu.cuStreamWaitEvent(waiting, passed, 0), kSuccess);
  }

  using FakeCuda::cu;
  using FakeCuda::launch;
  using FakeCuda::null;
};

TEST_F(FakeGraph, ACaptureRunsNothingAndTheGraphRunsItAsOftenAsItIsLaunched) {
  start();
  const auto on = stream();
  const auto count = new_counter();
  const auto graph = captured(on, [&] {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(increment, on, count), kSuccess);
  });
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(counter(count), 0u);
  EXPECT_EQ(nodes(graph), 3u);
  const auto executable = instantiated(graph);
  ASSERT_EQ(cu.cuGraphDestroy(graph), kSuccess);
  EXPECT_EQ(counter(count), 0u);
  replay(executable, on);
  EXPECT_EQ(counter(count), 3u);
  replay(executable, stream());
  EXPECT_EQ(counter(count), 6u);
  ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
  EXPECT_EQ(counter(count), 6u) << "nobody waited";
  ASSERT_EQ(cu.cuGraphExecDestroy(executable), kSuccess) << "while it runs";
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(counter(count), 9u);
}

TEST_F(FakeGraph, NodesAreListed) {
  start();
  const auto on = stream();
  const auto graph = captured(on, [&] {
    for (int i = 0; i < 2; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  });
  GraphNode listed[3] = {};
  std::size_t count = 3;
  ASSERT_EQ(cu.cuGraphGetNodes(graph, listed, &count), kSuccess);
  EXPECT_EQ(count, 2u);
  EXPECT_NE(listed[0], nullptr);
  EXPECT_NE(listed[0], listed[1]);
  EXPECT_EQ(listed[2], nullptr);
  count = 1;
  ASSERT_EQ(cu.cuGraphGetNodes(graph, listed, &count), kSuccess);
  EXPECT_EQ(count, 1u);
}

TEST_F(FakeGraph, ArgumentsAreThoseOfTheCapture) {
  start();
  const auto on = stream();
  auto first = new_counter();
  const auto second = new_counter();
  const auto pointed = first;
  const auto graph = captured(on, [&] {
    void* parameters[] = {&first};
    ASSERT_EQ(cu.cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr), kSuccess);
    first = second;
  });
  replay(instantiated(graph), on);
  EXPECT_EQ(counter(pointed), 1u);
  EXPECT_EQ(counter(second), 0u);
}

TEST_F(FakeGraph, EffectsFollowTheOrderOfForkedStreams) {
  start();
  const auto on = stream(), side = stream();
  const auto value = new_counter(), other = new_counter();
  const auto graph = captured(on, [&] {
    ASSERT_EQ(cu.cuMemsetD8Async(value, 1, sizeof(unsigned), on), kSuccess);
    order(on, side);
    ASSERT_EQ(launch(increment, side, value), kSuccess);
    ASSERT_EQ(launch(increment, on, other), kSuccess);
    order(side, on);
    ASSERT_EQ(launch(increment, on, value), kSuccess);
  });
  EXPECT_EQ(nodes(graph), 4u);
  const auto executable = instantiated(graph);
  for (unsigned i = 1; i <= 3; ++i) {
    replay(executable, on);
    EXPECT_EQ(counter(value), 0x01010101u + 2);
    EXPECT_EQ(counter(other), i);
  }
  ASSERT_EQ(launch(increment, side, other), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(side), kSuccess);
  EXPECT_EQ(counter(other), 4u) << "the stream is free again";
}

// Time

TEST_F(FakeGraph, ALineTakesTheSumAndAFanTheLongest) {
  constexpr double kKernel = 50'000, kGap = 1'000;
  start(a_node(a_device({{"graph", {{"node_ns", kGap}}}})));
  const auto on = stream();
  const auto line = [&](int count) {
    return captured(on, [&] {
      for (int i = 0; i < count; ++i) ASSERT_EQ(launch(null, on), kSuccess);
    });
  };
  const auto fan = [&](int count) {
    return captured(on, [&] {
      ASSERT_EQ(launch(null, on), kSuccess);
      std::vector<Stream> arms;
      for (int i = 0; i < count; ++i) {
        arms.push_back(stream());
        order(on, arms.back());
      }
      for (const Stream arm : arms) {
        ASSERT_EQ(launch(null, arm), kSuccess);
        order(arm, on);
      }
      ASSERT_EQ(launch(null, on), kSuccess);
    });
  };
  struct Case {
    Graph graph;
    std::size_t nodes;
    double ns;
  };
  const Case cases[] = {{captured(on, [] {}), 0, 0},
                        {line(1), 1, kKernel},
                        {line(2), 2, 2 * kKernel + kGap},
                        {line(100), 100, 100 * kKernel + 99 * kGap},
                        {fan(1), 3, 3 * kKernel + 2 * kGap},
                        {fan(50), 52, 3 * kKernel + 2 * kGap}};
  for (const auto& [graph, count, ns] : cases) {
    EXPECT_EQ(nodes(graph), count);
    const auto executable = instantiated(graph);
    EXPECT_SAME_NS(device_ns(on, [&] { ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess); }),
                   ns)
        << count;
  }
}

TEST_F(FakeGraph, EachStepTakesWhatIsDescribed) {
  constexpr int kNodes = 10;
  constexpr double kEach = kLong / kNodes;
  struct Step {
    const char* key;
    double ns;  // of the key
    // Of the ten captured launches, the instantiation, an upload, an update, a launch and its end.
    double capture, instantiate, upload, update, call, end;
  };
  const Step steps[] = {
      {"capture_node_ns", kEach, kLong, 0, 0, 0, 0, 0},
      {"instantiate_ns", kLong, 0, kLong, 0, 0, 0, 0},
      {"instantiate_node_ns", kEach, 0, kLong, 0, 0, 0, 0},
      {"upload_ns", kLong, 0, 0, kLong, 0, 0, 0},
      {"upload_node_ns", kEach, 0, 0, kLong, 0, 0, 0},
      {"update_ns", kLong, 0, 0, 0, kLong, 0, 0},
      {"update_node_ns", kEach, 0, 0, 0, kLong, 0, 0},
      {"call_ns", kLong, 0, 0, 0, 0, kLong, kLong},
      {"call_node_ns", kEach, 0, 0, 0, 0, kLong, kLong},
      {"launch_ns", kLong, 0, 0, 0, 0, 0, kLong},
      {"node_ns", kLong / (kNodes - 1), 0, 0, 0, 0, 0, kLong},
      {"first_ns", kLong, 0, 0, 0, 0, 0, 0},
  };
  std::vector<Json> devices;
  for (const auto& step : steps) {
    devices.push_back({{"graph", {{step.key, step.ns}}}, {"kernel_ns", 1000}});
  }
  start_devices(devices);
  int ordinal = 0;
  for (const auto& step : steps) {
    SCOPED_TRACE(step.key);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, ordinal++), kSuccess);
    ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
    ASSERT_EQ(cu.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), kSuccess);
    null = function("launchgap_null");
    const auto on = stream();
    const auto took = least_of([&] {
      std::vector<double> times{now_ns()};
      const auto graph = captured(on, [&] {
        for (int i = 0; i < kNodes; ++i) ASSERT_EQ(launch(null, on), kSuccess);
      });
      times.push_back(now_ns());
      const auto executable = instantiated(graph);
      times.push_back(now_ns());
      EXPECT_EQ(cu.cuGraphUpload(executable, on), kSuccess);
      times.push_back(now_ns());
      GraphUpdateResult result{};
      EXPECT_EQ(cu.cuGraphExecUpdate_v2(executable, graph, &result), kSuccess);
      times.push_back(now_ns());
      EXPECT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
      times.push_back(now_ns());
      EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
      const double launched = now_ns() - times[4];
      std::adjacent_difference(times.begin(), times.end(), times.begin());
      times.push_back(launched);
      return times;
    });
    EXPECT_TAKES(took[1], step.capture);
    EXPECT_TAKES(took[2], step.instantiate);
    EXPECT_TAKES(took[3], step.upload);
    EXPECT_TAKES(took[4], step.update);
    EXPECT_TAKES(took[5], step.call);
    EXPECT_TAKES(took[6], step.end);
  }
}

TEST_F(FakeGraph, TheFirstLaunchOfWhatIsNotUploadedTakesLonger) {
  start(a_node(a_device({{"graph", {{"first_ns", kLong}}}})));
  const auto on = stream();
  const auto graph = captured(on, [&] { ASSERT_EQ(launch(null, on), kSuccess); });
  const auto replay_ns = [&](GraphExec executable) {
    const double begin = now_ns();
    replay(executable, on);
    return now_ns() - begin;
  };
  const auto fresh = instantiated(graph), uploaded = instantiated(graph);
  ASSERT_EQ(cu.cuGraphUpload(uploaded, on), kSuccess);
  EXPECT_GE(replay_ns(fresh), kLong);
  EXPECT_SOONER(replay_ns(fresh), kLong);
  EXPECT_SOONER(replay_ns(uploaded), kLong);
}

TEST_F(FakeGraph, AHostThatPollsSeesWhatAGraphCounts) {
  start();
  void* host = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&host, sizeof(unsigned), kHostAllocDeviceMap), kSuccess);
  *static_cast<unsigned*>(host) = 0;
  const auto on = stream();
  const auto spin = function("launchgap_spin");
  const auto executable = instantiated(captured(on, [&] {
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(launch(spin, on, 10'000ull, reinterpret_cast<DevicePointer>(host)), kSuccess);
    }
  }));
  ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
  const std::atomic_ref<unsigned> counted(*static_cast<unsigned*>(host));
  for (const double begin = now_ns(); counted.load() < 2 && now_ns() - begin < 5e9;) {
  }
  EXPECT_EQ(counted.load(), 2u);
}

// Updates

TEST_F(FakeGraph, AnUpdateTakesOverTheArgumentsForLaunchesToCome) {
  start();
  const auto on = stream();
  const auto before = new_counter(), after = new_counter();
  const auto counting = [&](DevicePointer count) {
    return captured(on, [&] { ASSERT_EQ(launch(increment, on, count), kSuccess); });
  };
  const auto executable = instantiated(counting(before));
  ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
  GraphUpdateResult result{kGraphUpdateError, nullptr, nullptr};
  ASSERT_EQ(cu.cuGraphExecUpdate_v2(executable, counting(after), &result), kSuccess);
  EXPECT_EQ(result.result, kGraphUpdated);
  replay(executable, on);
  replay(executable, on);
  EXPECT_EQ(counter(before), 1u) << "launched before";
  EXPECT_EQ(counter(after), 2u);
  int old_result = kGraphUpdateError;
  GraphNode node = nullptr;
  ASSERT_EQ(cu.cuGraphExecUpdate(executable, counting(before), &node, &old_result), kSuccess);
  EXPECT_EQ(old_result, kGraphUpdated);
  replay(executable, on);
  EXPECT_EQ(counter(before), 2u);
}

TEST_F(FakeGraph, AnotherTopologyIsNoUpdate) {
  start();
  const auto on = stream(), side = stream();
  const auto count = new_counter();
  const auto graph = captured(on, [&] {
    ASSERT_EQ(launch(increment, on, count), kSuccess);
    ASSERT_EQ(launch(null, on), kSuccess);
  });
  const auto executable = instantiated(graph);
  const std::function<void()> others[] = {
      [] {},
      [&] { ASSERT_EQ(launch(null, on), kSuccess); },
      [&] {
        ASSERT_EQ(launch(null, on), kSuccess);
        ASSERT_EQ(launch(increment, on, count), kSuccess);
      },
      [&] {  // the same kernels, side by side
        order(on, side);
        ASSERT_EQ(launch(increment, on, count), kSuccess);
        ASSERT_EQ(launch(null, side), kSuccess);
        order(side, on);
      },
      [&] {
        ASSERT_EQ(launch(increment, on, count), kSuccess);
        ASSERT_EQ(cu.cuMemsetD8Async(count, 0, sizeof(unsigned), on), kSuccess);
      },
  };
  for (const auto& other : others) {
    GraphUpdateResult result{};
    EXPECT_EQ(cu.cuGraphExecUpdate_v2(executable, captured(on, other), &result),
              kGraphUpdateFailure);
    EXPECT_EQ(result.result, kGraphTopologyChanged);
  }
  replay(executable, on);
  EXPECT_EQ(counter(count), 1u) << "it is what it was";
}

// What is wrong

TEST_F(FakeGraph, WhatCudaForbidsMakesACaptureInvalid) {
  start();
  const auto on = stream(), other = stream();
  const auto pointer = memory(4);
  unsigned word = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&pinned, 64, kHostAllocDeviceMap), kSuccess);
  const auto flags = reinterpret_cast<DevicePointer>(pinned);
  const auto passed = event();
  ASSERT_EQ(cu.cuEventRecord(passed, other), kSuccess);
  const auto executable = instantiated(captured(on, [] {}));
  const auto blocking = stream(kStreamDefault);
  DevicePointer fresh = 0;
  void* fresh_host = nullptr;
  struct Case {
    const char* what;
    std::function<Result()> call;
    Result expected = kCaptureUnsupported;
    Stream captured = nullptr;  // another than `on`
  };
  const Case cases[] = {
      {"context", [&] { return cu.cuCtxSynchronize(); }},
      {"stream", [&] { return cu.cuStreamSynchronize(on); }},
      {"query", [&] { return cu.cuStreamQuery(on); }},
      {"destroy", [&] { return cu.cuStreamDestroy_v2(on); }},
      {"alloc", [&] { return cu.cuMemAlloc_v2(&fresh, 4); }},
      {"free", [&] { return cu.cuMemFree_v2(pointer); }},
      {"host alloc", [&] { return cu.cuMemHostAlloc(&fresh_host, 4, 0); }},
      {"host free", [&] { return cu.cuMemFreeHost(pinned); }},
      {"to the device", [&] { return cu.cuMemcpyHtoD_v2(pointer, &word, 4); }},
      {"from the device", [&] { return cu.cuMemcpyDtoH_v2(&word, pointer, 4); }},
      {"pool", [&] { return cu.cuMemAllocAsync(&fresh, 4, on); }},
      {"upload", [&] { return cu.cuGraphUpload(executable, on); }},
      {"graph", [&] { return cu.cuGraphLaunch(executable, on); }},
      {"gate", [&] { return launch(gate, on, flags, flags + 4, 1ull); }},
      {"flag", [&] { return launch(function("launchgap_flag"), on, flags, 1u); }},
      {"event of work that runs", [&] { return cu.cuStreamWaitEvent(on, passed, 0); }, kIsolation},
      {"null stream", [&] { return launch(null, nullptr); }, kImplicit, blocking},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(row.what);
    const Stream captured = row.captured != nullptr ? row.captured : on;
    begin_capture(captured);
    EXPECT_EQ(row.call(), row.expected);
    EXPECT_EQ(launch(null, captured), kCaptureInvalidated);
    Graph graph = reinterpret_cast<Graph>(1);
    EXPECT_EQ(cu.cuStreamEndCapture(captured, &graph), kCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(launch(null, captured), kSuccess) << "it is over";
    EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
  }
}

TEST_F(FakeGraph, OtherThreadsAndStreamsGoOn) {
  start();
  const auto on = stream(), other = stream();
  const auto graph = captured(on, [&] {
    ASSERT_EQ(launch(null, on), kSuccess);
    EXPECT_EQ(launch(null, other), kSuccess);
    EXPECT_EQ(launch(null, nullptr), kSuccess) << "only blocking streams concern it";
    EXPECT_EQ(cu.cuStreamSynchronize(other), kSuccess);
    std::thread([&] {
      EXPECT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
      DevicePointer pointer = 0;
      EXPECT_EQ(cu.cuMemAlloc_v2(&pointer, 4), kSuccess);
      EXPECT_EQ(cu.cuMemFree_v2(pointer), kSuccess);
      Graph stolen = nullptr;
      EXPECT_EQ(cu.cuStreamEndCapture(on, &stolen), kWrongThread);
    }).join();
  });
  EXPECT_EQ(nodes(graph), 1u);
}

TEST_F(FakeGraph, CapturesBeginAndEndInOrder) {
  start();
  const auto on = stream(), side = stream();
  Graph graph = nullptr;
  EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kIllegalState);
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(nullptr, kCaptureThreadLocal), kCaptureUnsupported);
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(on, 3), kInvalidValue);
  begin_capture(on);
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal), kIllegalState);
  order(on, side);
  ASSERT_EQ(launch(null, side), kSuccess);
  EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kUnjoined);
  begin_capture(on);
  order(on, side);
  EXPECT_EQ(cu.cuStreamEndCapture(side, &graph), kUnmatched);
  EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kCaptureInvalidated);
  begin_capture(on);
  begin_capture(side);
  const auto passed = event();
  ASSERT_EQ(cu.cuEventRecord(passed, on), kSuccess);
  EXPECT_EQ(cu.cuEventSynchronize(passed), kCapturedEvent);
  EXPECT_EQ(cu.cuStreamWaitEvent(side, passed, 0), kMerge);
  EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kCaptureInvalidated);
  EXPECT_EQ(cu.cuStreamEndCapture(side, &graph), kCaptureInvalidated);
  float milliseconds = 0;
  EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, passed, passed), kCapturedEvent);
}

TEST_F(FakeGraph, HandlesThatAreNoneAreRefused) {
  start();
  const auto on = stream();
  const auto graph = captured(on, [] {});
  const auto executable = instantiated(graph);
  ASSERT_EQ(cu.cuGraphDestroy(graph), kSuccess);
  EXPECT_EQ(cu.cuGraphDestroy(graph), kInvalidValue);
  GraphExec other = nullptr;
  EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&other, graph, 0), kInvalidValue);
  std::size_t count = 0;
  EXPECT_EQ(cu.cuGraphGetNodes(graph, nullptr, &count), kInvalidValue);
  ASSERT_EQ(cu.cuGraphExecDestroy(executable), kSuccess);
  EXPECT_EQ(cu.cuGraphExecDestroy(executable), kInvalidValue);
  EXPECT_EQ(cu.cuGraphLaunch(executable, on), kInvalidValue);
  EXPECT_EQ(cu.cuGraphUpload(executable, on), kInvalidValue);
}

TEST_F(FakeGraph, ADriverMayHaveNone) {
  start(a_node(a_device({{"graph", nullptr}})));
  const auto on = stream();
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  EXPECT_EQ(cu.cuStreamBeginCapture_v2(on, kCaptureThreadLocal), kNotSupported);
  EXPECT_EQ(cu.cuStreamEndCapture(on, &graph), kNotSupported);
  EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), kNotSupported);
  EXPECT_EQ(cu.cuGraphLaunch(executable, on), kNotSupported);
}

TEST_F(FakeGraph, AnIllegalAccessInAGraphKillsTheContext) {
  start();
  const auto on = stream();
  const auto executable = instantiated(
      captured(on, [&] { ASSERT_EQ(launch(increment, on, DevicePointer{4096}), kSuccess); }));
  ASSERT_EQ(cu.cuGraphLaunch(executable, on), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
  EXPECT_EQ(cu.cuGraphLaunch(executable, on), kIllegalAddress);
}

TEST_F(FakeGraph, ALibrarysLaunchesAreCaptured) {
  start();
  Cublas blas;
  CublasHandle handle = nullptr;
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto on = stream();
  ASSERT_EQ(blas.cublasSetStream_v2(handle, on), kCublasSuccess);
  const auto a = memory(4), b = memory(4), c = memory(4);
  const float two = 2, three = 3, one = 1, zero = 0;
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(a, &two, 4), kSuccess);
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(b, &three, 4), kSuccess);
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(c, &zero, 4), kSuccess);
  const auto pointer = [](DevicePointer address) { return reinterpret_cast<float*>(address); };
  const auto product = [&] {
    float value = -1;
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(&value, c, 4), kSuccess);
    return value;
  };
  const auto graph = captured(on, [&] {
    ASSERT_EQ(blas.cublasSgemm_v2(
                  handle, 0, 0, 1, 1, 1, &one, pointer(a), 1, pointer(b), 1, &zero, pointer(c), 1),
              kCublasSuccess);
  });
  EXPECT_EQ(product(), 0);
  EXPECT_EQ(nodes(graph), 1u);
  replay(instantiated(graph), on);
  EXPECT_EQ(product(), 6);
  EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
}

}  // namespace
}  // namespace launchgap::fake
