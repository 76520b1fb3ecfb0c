// What the description makes calls, launches, kernels and waits cost, key by key.
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <sched.h>

#include "harness/device/cuda/runtime_plugin.h"
#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

const Json kNone = Json::object();

class FakeCost : public FakeCuda {
 public:
  template <typename Body>
  static double took(Body body) {
    const double begin = now_ns();
    EXPECT_EQ(body(), kSuccess);
    return now_ns() - begin;
  }
  Stream stream_of(int priority) {
    Stream created = nullptr;
    EXPECT_EQ(cu.cuStreamCreateWithPriority(&created, kStreamNonBlocking, priority), kSuccess);
    return created;
  }
  Graph line(Stream on, int nodes) {
    return captured(on, [&] {
      for (int i = 0; i < nodes; ++i) EXPECT_EQ(launch(null, on), kSuccess);
    });
  }
};

const cuda::RuntimePlugin& runtime_plugin() {
  void* const handle = open_library(cuda::kRuntimePluginFile);
  using Get = const cuda::RuntimePlugin*();
  return *reinterpret_cast<Get*>(dlsym(handle, cuda::kRuntimePluginSymbol))();
}

/// A call that was prepared, and the stream whose end is waited for; or the wait that is timed.
struct Prepared {
  Stream on;
  std::function<Result()> call;
};
using Prepare = std::function<Prepared(FakeCost&)>;

/// After a first launch into the stream that this makes, or into the null stream, and a pause.
Prepare second(bool after_null_stream, unsigned flags, useconds_t pause_us = 0) {
  return [=](FakeCost& t) {
    const Stream on = t.stream(flags);
    EXPECT_EQ(t.launch(t.null, after_null_stream ? nullptr : on), kSuccess);
    EXPECT_EQ(t.cu.cuCtxSynchronize(), kSuccess);
    usleep(pause_us);
    return Prepared{on, [&t, on] { return t.launch(t.null, on); }};
  };
}

/// While a stream of another priority keeps the device busy.
Prepare beside_busy(int busy_priority, int priority) {
  return [=](FakeCost& t) {
    const auto busy = t.stream_of(busy_priority), on = t.stream_of(priority);
    EXPECT_EQ(t.launch(t.spin, busy, 1'000'000'000ull, DevicePointer{0}), kSuccess);
    return Prepared{on, [&t, on] { return t.launch(t.null, on); }};
  };
}

Prepare grid_of(unsigned blocks) {
  return [=](FakeCost& t) {
    const Stream on = t.stream();
    return Prepared{on, [&t, on, blocks] {
                      return t.cu.cuLaunchKernel(
                          t.null, blocks, 1, 1, 1024, 1, 1, 0, on, nullptr, nullptr);
                    }};
  };
}

/// Any other call, and a new stream or the null one.
Prepare call(std::function<Result(FakeCost&, Stream)> body, bool in_null_stream = false) {
  return [body = std::move(body), in_null_stream](FakeCost& t) {
    const Stream on = in_null_stream ? nullptr : t.stream();
    return Prepared{on, [&t, on, body] { return body(t, on); }};
  };
}

/// What ten captured launches are brought to, and what is then done with them.
constexpr int kNodes = 10;
Prepare graph(const std::function<Result(FakeCost&, Graph, GraphExec, Stream)>& body,
              bool upload = true) {
  return [=](FakeCost& t) {
    const Stream on = t.stream();
    const Graph captured = t.line(on, kNodes);
    const GraphExec executable = t.instantiated(captured);
    EXPECT_TRUE(!upload || t.cu.cuGraphUpload(executable, on) == kSuccess);
    return Prepared{on, [=, &t] { return body(t, captured, executable, on); }};
  };
}
Result replay(FakeCost& t, Graph, GraphExec executable, Stream on) {
  return t.cu.cuGraphLaunch(executable, on);
}

/// The wait for a kernel, in a context or for an event with these flags.
Prepare wait_in(unsigned context_flags, unsigned event_flags) {
  return [=](FakeCost& t) {
    EXPECT_EQ(t.cu.cuDevicePrimaryCtxSetFlags_v2(t.ordinal, context_flags), kSuccess);
    const Stream on = t.stream();
    Event end = nullptr;
    EXPECT_EQ(t.cu.cuEventCreate(&end, event_flags), kSuccess);
    EXPECT_EQ(t.launch(t.spin, on, 5'000'000ull, DevicePointer{0}), kSuccess);
    EXPECT_EQ(t.cu.cuEventRecord(end, on), kSuccess);
    return Prepared{on, [&t, end] { return t.cu.cuEventSynchronize(end); }};
  };
}

/// What something costs beside the microseconds of the simplest launch.
struct Cost {
  const char* of;
  Json keys;
  double call_ns;
  double end_ns;  // from the call's begin to the end of what it launched
  Prepare prepare;
};

Json in(const char* object, const char* key, double ns) {
  return {{object, {{key, ns}}}};
}

std::vector<Cost> costs() {
  constexpr unsigned kFree = kStreamNonBlocking, kBlocking = kStreamDefault;
  constexpr double kEach = kLong / kNodes, kLate = 3 * kLong;
  const Json pauses = {{{"after_ms", 50}, {"ns", kLong}}, {{"after_ms", 300}, {"ns", 3 * kLong}}};
  const Json two_at_once = {{"multiprocessors", 1}, {"wave_ns", kLong}};
  const Json wake = {{"wake_ns", {{"spin", 0}, {"yield", kLong}, {"block", kLate}}}};
  const auto first = call([](FakeCost& t, Stream on) { return t.launch(t.null, on); });
  const auto with_kibibyte = call([](FakeCost& t, Stream on) {
    struct {
      DevicePointer to = 0;
      unsigned words[254]{};
    } argument;
    return t.launch(t.function("launchgap_arguments_1024"), on, argument);
  });
  const auto cooperative = call([](FakeCost& t, Stream on) {
    return t.launch_with(kLaunchCooperative, t.null, on, nullptr);
  });
  const auto load = call([](FakeCost& t, Stream) {
    return t.cu.cuModuleLoadDataEx(&t.module, kPtx, 0, nullptr, nullptr);
  });
  const auto find = call([](FakeCost& t, Stream) {
    return t.cu.cuModuleGetFunction(&t.null, t.module, "launchgap_flag");
  });
  const auto memset = call([](FakeCost& t, Stream on) {
    EXPECT_EQ(t.launch(t.spin, t.stream(), 30'000'000ull, DevicePointer{0}), kSuccess);
    return t.cu.cuMemsetD8Async(t.memory(4), 1, 4, on);
  });
  const auto allocate = call([](FakeCost& t, Stream) {
    DevicePointer pointer = 0;
    return t.cu.cuMemAlloc_v2(&pointer, 4096);
  });
  const auto free = call([](FakeCost& t, Stream) { return t.cu.cuMemFree_v2(t.memory(4096)); });
  const auto product = call([](FakeCost& t, Stream on) { return t.multiply(on); });
  const auto chevron =
      call([](FakeCost&, Stream on) { return Result{runtime_plugin().launch_chevron(on)}; });
  const auto launch_ex =
      call([](FakeCost&, Stream on) { return Result{runtime_plugin().launch_ex(on)}; });
  const auto into_null_stream =
      call([](FakeCost& t, Stream) { return t.launch(t.null, nullptr); }, true);
  const auto capture = call(
      [](FakeCost& t, Stream on) { return t.line(on, kNodes) != nullptr ? kSuccess : kUnknown; });
  const auto instantiate = graph([](FakeCost& t, Graph g, GraphExec e, Stream) {
    return t.cu.cuGraphInstantiateWithFlags(&e, g, 0);
  });
  const auto upload = graph(
      [](FakeCost& t, Graph, GraphExec e, Stream on) { return t.cu.cuGraphUpload(e, on); }, false);
  const auto update = graph([](FakeCost& t, Graph g, GraphExec e, Stream) {
    GraphUpdateResult result{};
    return t.cu.cuGraphExecUpdate_v2(e, g, &result);
  });
  return {
      {"the simplest launch", kNone, 0, 0, first},
      {"arguments", {{"argument_ns_per_byte", kLong / 1024}}, kLong, kLong, with_kibibyte},
      {"a function's first launch", {{"lazy_ns", kLong}}, kLong, kLong, first},
      {"its second", {{"lazy_ns", kLong}}, 0, 0, second(false, kFree)},
      {"a function got", {{"lazy_ns", kLong}, {"lazy_in", "function"}}, kLong, kLong, find},
      {"its launch", {{"lazy_ns", kLong}, {"lazy_in", "function"}}, 0, 0, first},
      {"a context's first memset", {{"lazy_memsets", true}}, kLong / 2, kLong / 2, memset},
      {"a memset", kNone, 0, 0, memset},
      {"a cooperative launch", {{"cooperative_ns", kLong}}, kLong, kLong, cooperative},
      {"a plain one", {{"cooperative_ns", kLong}}, 0, 0, first},
      {"another stream", {{"stream_switch_ns", kLong}}, kLong, kLong, second(true, kFree)},
      {"the same stream", {{"stream_switch_ns", kLong}}, 0, 0, second(false, kFree)},
      {"the null stream", {{"legacy_ns", kLong}}, 0, kLong, into_null_stream},
      {"a blocking stream after it", {{"legacy_ns", kLong}}, 0, kLong, second(true, kBlocking)},
      {"a free one after it", {{"legacy_ns", kLong}}, 0, 0, second(true, kFree)},
      {"a busy device", {{"contended_ns", kLong}}, 0, kLong, beside_busy(0, 0)},
      {"a higher priority there", {{"contended_ns", kLong}}, 0, 0, beside_busy(0, -5)},
      {"a lower priority there", {{"contended_ns", kLong}}, 0, kLong, beside_busy(-1, 0)},
      {"no pause", {{"idle", pauses}}, 0, 0, second(false, kFree)},
      {"a pause", {{"idle", pauses}}, 0, kLong, second(false, kFree, 70'000)},
      {"a long pause", {{"idle", pauses}}, 0, 3 * kLong, second(false, kFree, 320'000)},
      {"one wave of blocks", two_at_once, 0, 0, grid_of(2)},
      {"two waves", two_at_once, 0, kLong, grid_of(3)},
      {"three waves", two_at_once, 0, 2 * kLong, grid_of(6)},
      {"an allocation", {{"alloc_ns", kLong}}, kLong, kLong, allocate},
      {"freeing", {{"free_ns", kLong}}, kLong, kLong, free},
      {"loading", {{"module_ns", kLong}}, kLong, kLong, load},
      {"compiling", {{"jit_ns", kLong}}, kLong, kLong, load},
      {"a library's call", {{"library_call_ns", kLong}}, kLong, kLong, product},
      {"the runtime's launch", in("runtime", "chevron_ns", kLong), kLong, kLong, chevron},
      {"its other one", in("runtime", "chevron_ns", kLong), 0, 0, launch_ex},
      {"and that for itself", in("runtime", "ex_ns", kLong), kLong, kLong, launch_ex},
      {"a wait that spins", wake, 0, 0, wait_in(kScheduleSpin, kEventDefault)},
      {"one that yields", wake, kLong, kLong, wait_in(kScheduleYield, kEventDefault)},
      {"one that sleeps", wake, kLate, kLate, wait_in(kScheduleBlockingSync, kEventDefault)},
      {"one for such an event", wake, kLate, kLate, wait_in(kScheduleSpin, kEventBlockingSync)},
      {"ten captured launches", in("graph", "capture_node_ns", kEach), kLong, kLong, capture},
      {"instantiation", in("graph", "instantiate_ns", kLong), kLong, kLong, instantiate},
      {"by node", in("graph", "instantiate_node_ns", kEach), kLong, kLong, instantiate},
      {"an upload", in("graph", "upload_ns", kLong), kLong, kLong, upload},
      {"by node", in("graph", "upload_node_ns", kEach), kLong, kLong, upload},
      {"an update", in("graph", "update_ns", kLong), kLong, kLong, update},
      {"by node", in("graph", "update_node_ns", kEach), kLong, kLong, update},
      {"a graph's launch", in("graph", "call_ns", kLong), kLong, kLong, graph(replay)},
      {"by node", in("graph", "call_node_ns", kEach), kLong, kLong, graph(replay)},
      {"its way to the device", in("graph", "launch_ns", kLong), 0, kLong, graph(replay)},
      {"between ten nodes", in("graph", "node_ns", kLong / 9), 0, kLong, graph(replay)},
      {"the first of an uploaded one", in("graph", "first_ns", kLong), 0, 0, graph(replay)},
      {"and of another", in("graph", "first_ns", kLong), kLong, kLong, graph(replay, false)},
  };
}

TEST_F(FakeCost, EachIsPartOfTheCallOrOnlyOfWhatFollows) {
  const std::vector<Cost> all = costs();
  std::vector<Json> devices;
  for (const Cost& cost : all) devices.push_back(cost.keys);
  start_devices(devices);
  for (int i = 0; const Cost& cost : all) {
    SCOPED_TRACE(cost.of);
    const int which = i++;
    const auto [called, ended] = least_of([&] {
      use_device(which);
      const Prepared prepared = cost.prepare(*this);
      const double begin = now_ns();
      EXPECT_EQ(prepared.call(), kSuccess);
      const double returned = now_ns();
      EXPECT_EQ(cu.cuStreamSynchronize(prepared.on), kSuccess);
      const double end = now_ns();
      EXPECT_EQ(cu.cuDevicePrimaryCtxRelease_v2(which), kSuccess);  // so that first times are
      return std::array{returned - begin, end - begin};
    });
    EXPECT_TAKES(called, cost.call_ns);
    EXPECT_TAKES(ended, cost.end_ns);
  }
}

TEST_F(FakeCost, CallsAndLaunchesAreDrawnAsDescribed) {
  const auto lognormal = [](double median) {
    return Json{{"lognormal", {{"median", median}, {"sigma", 0.05}}}};
  };
  start(a_node(a_device(
      {{"call_ns", lognormal(20000)}, {"launch_ns", lognormal(50000)}, {"kernel_ns", 10000}})));
  const auto on = stream();
  constexpr std::size_t kWanted = 500, kLeast = 200;
  std::vector<double> calls, launches;
  for (int tries = 0; calls.size() < kWanted && tries < 5000; ++tries) {
    const double waited = waited_for_cpu_ns();
    const double begin = now_ns();
    ASSERT_EQ(launch(null, on), kSuccess);
    const double returned = now_ns();
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    const double end = now_ns();
    if (waited_for_cpu_ns() > waited) continue;  // another process had a CPU
    calls.push_back(returned - begin);
    launches.push_back(end - begin - 10000);
  }
  if (calls.size() < kLeast) GTEST_SKIP() << "other processes have the CPUs";
  EXPECT_NEAR(median(calls), 20000, kTolerance * 20000);
  EXPECT_NEAR(median(launches), 50000, kTolerance * 50000);
}

/// What work lasts on the device by its events, which is exact.
struct Length {
  const char* of;
  Json keys;
  double ns;
  std::function<void(FakeCost&, Stream)> work;
};

TEST_F(FakeCost, LengthsAreExact) {
  const Json one_block = {{"multiprocessors", 1}, {"max_blocks_per_multiprocessor", 1}};
  const Json slow = {{"kernel_ns", 0}, {"bandwidth_gbs", 1}};
  const Json slow_link = {{"kernel_ns", 0}, {"link_gbs", 1}};
  const Json overlapping = {{"compute_capability", "9.0"}, {"dependent_overlap_ns", 40'000}};
  const auto null = [](FakeCost& t, Stream on) { EXPECT_EQ(t.launch(t.null, on), kSuccess); };
  const auto spin = [](unsigned blocks, unsigned long long ns) {
    return [=](FakeCost& t, Stream on) {
      auto lasting = ns;
      DevicePointer nowhere = 0;
      void* parameters[] = {&lasting, &nowhere};
      EXPECT_EQ(t.cu.cuLaunchKernel(t.spin, blocks, 1, 1, 32, 1, 1, 0, on, parameters, nullptr),
                kSuccess);
    };
  };
  const auto dependent = [](LaunchAttributeId how) {
    return [=](FakeCost& t, Stream on) {
      unsigned long long ns = 50'000;
      DevicePointer count = t.memory(4);
      void* parameters[] = {&ns, &count};
      const auto kernel = t.native_function("launchgap_dependent");
      for (int i = 0; i < 3; ++i) EXPECT_EQ(t.launch_with(how, kernel, on, parameters), kSuccess);
    };
  };
  const auto line = [](int nodes) {
    return [=](FakeCost& t, Stream on) {
      EXPECT_EQ(t.cu.cuGraphLaunch(t.instantiated(t.line(t.stream(), nodes)), on), kSuccess);
    };
  };
  const auto fan = [](FakeCost& t, Stream on) {
    const Stream from = t.stream(), side = t.stream();
    const Graph graph = t.captured(from, [&] {
      EXPECT_EQ(t.launch(t.null, from), kSuccess);
      t.order(from, side);
      for (const Stream arm : {from, side}) EXPECT_EQ(t.launch(t.null, arm), kSuccess);
      t.order(side, from);
      EXPECT_EQ(t.launch(t.null, from), kSuccess);
    });
    EXPECT_EQ(t.cu.cuGraphLaunch(t.instantiated(graph), on), kSuccess);
  };
  const auto memset = [](FakeCost& t, Stream on) {
    EXPECT_EQ(t.cu.cuMemsetD8Async(t.memory(4096), 1, 4096, on), kSuccess);
  };
  const auto copy = [](FakeCost& t, Stream on) {
    EXPECT_EQ(t.cu.cuMemcpyDtoDAsync_v2(t.memory(4096), t.memory(4096), 4096, on), kSuccess);
  };
  const auto from_pinned = [](FakeCost& t, Stream on) {
    void* pinned = nullptr;
    EXPECT_EQ(t.cu.cuMemHostAlloc(&pinned, 4096, 0), kSuccess);
    EXPECT_EQ(t.cu.cuMemcpyHtoDAsync_v2(t.memory(4096), pinned, 4096, on), kSuccess);
  };
  const auto product = [](FakeCost& t, Stream on) { EXPECT_EQ(t.multiply(on, 1000), kSuccess); };
  const Json gap = in("graph", "node_ns", 1000);
  const Length lengths[] = {
      {"an empty kernel", kNone, 50'000, null},
      {"a spin", kNone, 250'000, spin(1, 200'000)},
      {"one in two waves", one_block, 450'000, spin(2, 200'000)},
      {"one of four steps of the timer", {{"global_timer_ns", 50'000}}, 250'000, spin(1, 200'000)},
      {"a memset by its bytes", slow, 4096, memset},
      {"a copy by what it reads and writes", slow, 8192, copy},
      {"a copy from pinned memory by its bytes", slow_link, 4096, from_pinned},
      {"a product by its operations", kNone, 250'000, product},
      {"launches that might overlap", overlapping, 300'000, dependent(kLaunchCooperative)},
      {"that do, with the gate's end too", overlapping, 180'000, dependent(kLaunchProgrammatic)},
      {"a graph of two nodes", gap, 101'000, line(2)},
      {"of a hundred", gap, 5'099'000, line(100)},
      {"of two that run side by side", gap, 152'000, fan},
  };
  on_each(lengths, &Length::keys, [&](const Length& length) {
    SCOPED_TRACE(length.of);
    const auto on = stream();
    EXPECT_SAME_NS(device_ns(on, [&] { length.work(*this, on); }), length.ns);
  });
}

TEST_F(FakeCost, NoKernelWaitsForLessThanTwoStepsOfTheGlobalTimer) {
  start(a_node(a_device({{"kernel_ns", 0}, {"global_timer_ns", 1'000'000}})));
  const auto on = stream();
  const double shortest =
      device_ns(on, [&] { EXPECT_EQ(launch(spin, on, 1ull, DevicePointer{0}), kSuccess); });
  EXPECT_GE(shortest, 1e6);
  EXPECT_LE(shortest, 2e6 + 1);
}

// Queues and modules

TEST_F(FakeCost, ALaunchIntoAFullStreamWaitsForTheFirst) {
  start(a_node(a_device({{"queue_depth", 3}, {"kernel_ns", kLong}})));
  const auto on = stream(), other = stream();
  const double begin = now_ns();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(launch(null, other), kSuccess);
  EXPECT_SOONER(now_ns() - begin, kLong) << "there is room, and in another stream too";
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_GE(now_ns() - begin, kLong);
  EXPECT_SOONER(now_ns() - begin, 2 * kLong);
}

TEST_F(FakeCost, LoadingTakesAsLongAsItsModeAndTheCacheSay) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fake_jit_" + std::to_string(getpid()));
  const auto inside = (folder / "deeper").string();
  struct Case {
    const char* name;
    const char* loading;
    const char* cache;
    const char* disabled;  // CUDA_CACHE_DISABLE
    const char* image;
    double load_ns;
    double launch_ns;
  };
  const Case cases[] = {
      {"lazy", "LAZY", "", "0", kElf, kLong, 2 * kLong},
      {"eager", "EAGER", "", "0", kElf, 3 * kLong, 0},
      {"PTX", "LAZY", "", "0", kPtx, 5 * kLong, 2 * kLong},
      {"PTX for the cache", "LAZY", inside.c_str(), "0", kPtx, 5 * kLong, 2 * kLong},
      {"PTX from the cache", "LAZY", inside.c_str(), "0", kPtx, kLong, 2 * kLong},
      {"the same, disabled", "LAZY", inside.c_str(), "1", kPtx, 5 * kLong, 2 * kLong},
      {"no such folder", "LAZY", "/proc/nowhere", "0", kPtx, 5 * kLong, 2 * kLong},
      {"nor now", "LAZY", "/proc/nowhere", "0", kPtx, 5 * kLong, 2 * kLong},
  };
  start(a_node(a_device({{"module_ns", kLong}, {"lazy_ns", 2 * kLong}, {"jit_ns", 4 * kLong}})));
  for (const auto& row : cases) {
    SCOPED_TRACE(row.name);
    setenv("CUDA_MODULE_LOADING", row.loading, 1);
    setenv("CUDA_CACHE_DISABLE", row.disabled, 1);
    setenv("CUDA_CACHE_PATH", row.cache, 1);
    const double load =
        took([&] { return cu.cuModuleLoadDataEx(&module, row.image, 0, nullptr, nullptr); });
    const auto kernel = function("launchgap_null");
    const double launched = took([&] { return launch(kernel, nullptr); });
    EXPECT_TAKES(load, row.load_ns);
    EXPECT_TAKES(launched, row.launch_ns);
    ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(FakeCost, ALibrarysFirstHandleTakesLongerAndABlockingLaunchUntilItsEnd) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  start(a_node(a_device({{"library_ns", kLong}})));
  Cublas blas;
  std::deque<CublasHandle> handles;  // more than two where a time is taken again
  const auto create = [&] { return blas.cublasCreate_v2(&handles.emplace_back(nullptr)); };
  EXPECT_TAKES(took(create), kLong);
  EXPECT_SOONER(took(create), kLong);
  for (const CublasHandle handle : handles)
    EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
  EXPECT_GE(took([&] { return launch(spin, stream(), 1ull * 30'000'000, DevicePointer{0}); }),
            kLong);
}

/// Also a gate, whose host would open it only after its launch.
TEST_F(FakeCost, ANodeThatSerialisesLetsALaunchReturnWhenItsKernelIsOver) {
  auto node = a_node(a_device());
  node["serialised"] = true;
  start(node);
  EXPECT_GE(took([&] { return launch(spin, stream(), 1ull * 30'000'000, DevicePointer{0}); }),
            kLong);
  auto* const words = mapped();
  const auto gate = function("launchgap_gate");
  constexpr unsigned long long kTimeoutNs = 40'000'000;
  const auto held = took([&] {
    return launch(gate,
                  stream(),
                  reinterpret_cast<DevicePointer>(words),
                  reinterpret_cast<DevicePointer>(words + 1),
                  kTimeoutNs);
  });
  EXPECT_GE(held, static_cast<double>(kTimeoutNs));
  EXPECT_EQ(words[1], 1u) << "it gave up";
}

// A host that polls

/// On an idle machine 1 us is enough. Where others use the processors, many come a time slice late,
/// since two threads must run at once, but some do not. Also for a host that is bound to one CPU.
TEST_F(FakeCost, AFlagRisesWhenItsKernelBegins) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  constexpr double kSlack = 50'000;
  start_devices({{{"launch_ns", 60'000}}, {{"call_ns", 1500}, {"launch_ns", 5000}}});
  for (const bool bound : {false, true}) {
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, bound ? &one : &all), 0);
    for (const auto& [device, launch_ns] : {std::pair{0, 60'000.0}, {1, 5'000.0}}) {
      use_device(device);
      const auto on = stream();
      auto* const words = mapped();
      const auto raise = function("launchgap_flag");
      double least = 1e18;
      const double deadline = now_ns() + 10e9;
      for (unsigned i = 1; i <= 100 || (least > launch_ns + kSlack && now_ns() < deadline); ++i) {
        const double begin = now_ns();
        ASSERT_EQ(launch(raise, on, reinterpret_cast<DevicePointer>(words), i), kSuccess);
        const std::atomic_ref<unsigned> word(*words);
        while (word.load() != i && now_ns() - begin < 1e9) {
        }
        ASSERT_EQ(word.load(), i);
        const double seen = now_ns() - begin;
        ASSERT_GE(seen, launch_ns) << "not before its time";
        least = std::min(least, seen);
        ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
      }
      EXPECT_LT(least, launch_ns + kSlack) << bound;
    }
  }
}

}  // namespace
}  // namespace launchgap::fake
