// What the fake driver makes a launch cost, key by key of the description.
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <sched.h>
#include <sys/wait.h>
#include <thread>

#include "harness/device/cuda/runtime_plugin.h"
#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

class FakeLaunch : public FakeCuda {
 public:
  void use_device(int ordinal, unsigned flags = kScheduleSpin) {
    ASSERT_EQ(cu.cuDevicePrimaryCtxSetFlags_v2(ordinal, flags), kSuccess);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, ordinal), kSuccess);
    ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
    ASSERT_EQ(cu.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), kSuccess);
    null = function("launchgap_null");
    gate = function("launchgap_gate");
    increment = function("launchgap_increment");
    spin = function("launchgap_spin");
  }

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

  template <typename... Arguments>
  Result launch_with(LaunchAttributeId id, Function function, Stream on, Arguments... arguments) {
    void* parameters[] = {static_cast<void*>(&arguments)..., nullptr};
    LaunchAttribute attribute{};
    attribute.id = id;
    attribute.value.flag = 1;
    const LaunchConfig config{1, 1, 1, 1, 1, 1, 0, on, &attribute, 1};
    return cu.cuLaunchKernelEx(&config, function, parameters, nullptr);
  }

  // What the tests' helpers use as well.
  using FakeCuda::context;
  using FakeCuda::cu;
  using FakeCuda::function;
  using FakeCuda::increment;
  using FakeCuda::launch;
  using FakeCuda::null;
  using FakeCuda::stream;

  Function spin = nullptr;
};

struct Prepared {
  Stream on;
  std::function<Result()> launch;
};
using Prepare = std::function<Prepared(FakeLaunch&)>;

Prepared null_on(FakeLaunch& test, Stream on) {
  return {on, [&test, on] { return test.launch(test.null, on); }};
}

Prepare first_on(unsigned flags) {
  return [=](FakeLaunch& test) { return null_on(test, test.stream(flags)); };
}

/// After a first launch, and a pause.
Prepare second_after(useconds_t pause_us) {
  return [=](FakeLaunch& test) {
    const Stream on = test.stream();
    EXPECT_EQ(test.launch(test.null, on), kSuccess);
    EXPECT_EQ(test.cu.cuStreamSynchronize(on), kSuccess);
    usleep(pause_us);
    return null_on(test, on);
  };
}

/// After a first launch into the null stream.
Prepare after_null_stream(unsigned flags) {
  return [=](FakeLaunch& test) {
    EXPECT_EQ(test.launch(test.null, nullptr), kSuccess);
    EXPECT_EQ(test.cu.cuCtxSynchronize(), kSuccess);
    return null_on(test, test.stream(flags));
  };
}

/// While a stream of another priority keeps the device busy.
Prepare beside_busy(int busy_priority, int priority) {
  return [=](FakeLaunch& test) {
    const auto busy = test.stream_of(busy_priority), on = test.stream_of(priority);
    constexpr unsigned long long kVeryLong = 1'000'000'000;
    EXPECT_EQ(test.launch(test.spin, busy, kVeryLong, DevicePointer{0}), kSuccess);
    return null_on(test, on);
  };
}

Prepare grid_of(unsigned blocks) {
  return [=](FakeLaunch& test) {
    const Stream on = test.stream();
    return Prepared{on, [&test, on, blocks] {
                      return test.cu.cuLaunchKernel(
                          test.null, blocks, 1, 1, 1024, 1, 1, 0, on, nullptr, nullptr);
                    }};
  };
}

Prepared cooperative(FakeLaunch& test) {
  const Stream on = test.stream();
  return {on, [&test, on] { return test.launch_with(kLaunchCooperative, test.null, on); }};
}

Prepared with_kibibyte(FakeLaunch& test) {
  struct Argument {
    DevicePointer to = 0;
    unsigned words[254]{};
  };
  const Stream on = test.stream();
  return {on, [&test, on, kernel = test.function("launchgap_arguments_1024")] {
            return test.launch(kernel, on, Argument());
          }};
}

/// What a launch costs beside the microseconds of the simplest one.
struct Cost {
  const char* of;
  Json keys;
  double call_ns;
  double end_ns;  // from the call's begin to the kernel's end
  Prepare prepare;
};

TEST_F(FakeLaunch, EachCostIsPartOfTheCallOrOnlyOfWhatFollows) {
  constexpr unsigned kFree = kStreamNonBlocking, kBlocking = kStreamDefault;
  const Json pauses = {{{"after_ms", 50}, {"ns", kLong}}, {{"after_ms", 300}, {"ns", 3 * kLong}}};
  const Json two_at_once = {{"multiprocessors", 1}, {"wave_ns", kLong}};
  const Cost costs[] = {
      {"the simplest launch", Json::object(), 0, 0, first_on(kFree)},
      {"arguments", {{"argument_ns_per_byte", kLong / 1024}}, kLong, kLong, with_kibibyte},
      {"a function's first launch", {{"lazy_ns", kLong}}, kLong, kLong, first_on(kFree)},
      {"its second", {{"lazy_ns", kLong}}, 0, 0, second_after(0)},
      {"a cooperative launch", {{"cooperative_ns", kLong}}, kLong, kLong, cooperative},
      {"a plain one", {{"cooperative_ns", kLong}}, 0, 0, first_on(kFree)},
      {"another stream", {{"stream_switch_ns", kLong}}, kLong, kLong, after_null_stream(kFree)},
      {"the same stream", {{"stream_switch_ns", kLong}}, 0, 0, second_after(0)},
      {"a blocking stream after the null stream",
       {{"legacy_ns", kLong}},
       0,
       kLong,
       after_null_stream(kBlocking)},
      {"a free one after it", {{"legacy_ns", kLong}}, 0, 0, after_null_stream(kFree)},
      {"a busy device", {{"contended_ns", kLong}}, 0, kLong, beside_busy(0, 0)},
      {"a higher priority there", {{"contended_ns", kLong}}, 0, 0, beside_busy(0, -5)},
      {"a lower priority there", {{"contended_ns", kLong}}, 0, kLong, beside_busy(-1, 0)},
      {"no pause", {{"idle", pauses}}, 0, 0, second_after(0)},
      {"a pause", {{"idle", pauses}}, 0, kLong, second_after(70'000)},
      {"a long pause", {{"idle", pauses}}, 0, 3 * kLong, second_after(320'000)},
      {"one wave of blocks", two_at_once, 0, 0, grid_of(2)},
      {"two waves", two_at_once, 0, kLong, grid_of(3)},
      {"three waves", two_at_once, 0, 2 * kLong, grid_of(6)},
  };
  std::vector<Json> devices;
  for (const auto& cost : costs) devices.push_back(cost.keys);
  start_devices(devices);
  int ordinal = 0;
  for (const auto& cost : costs) {
    SCOPED_TRACE(cost.of);
    const auto [called, ended] = least_of([&] {
      use_device(ordinal);
      const Prepared prepared = cost.prepare(*this);
      const double begin = now_ns();
      EXPECT_EQ(prepared.launch(), kSuccess);
      const double returned = now_ns();
      EXPECT_EQ(cu.cuStreamSynchronize(prepared.on), kSuccess);
      return std::array{returned - begin, now_ns() - begin};
    });
    ++ordinal;
    EXPECT_TAKES(called, cost.call_ns);
    EXPECT_TAKES(ended, cost.end_ns);
  }
}

TEST_F(FakeLaunch, ANullStreamsLaunchPaysForItself) {
  start(a_node(a_device({{"legacy_ns", kLong}})));
  const double begin = now_ns();
  ASSERT_EQ(launch(null, nullptr), kSuccess);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  EXPECT_GE(now_ns() - begin, kLong);
}

// Blocks

TEST_F(FakeLaunch, OccupancyIsLimitedByThreadsAndByBlocks) {
  start(a_node(
      a_device({{"threads_per_multiprocessor", 1536}, {"max_blocks_per_multiprocessor", 16}})));
  const std::pair<int, int> cases[] = {
      {1, 16}, {32, 16}, {96, 16}, {97, 12}, {128, 12}, {512, 3}, {1024, 1}};
  for (const auto& [threads, expected] : cases) {
    int blocks = -1;
    EXPECT_EQ(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, null, threads, 0), kSuccess);
    EXPECT_EQ(blocks, expected) << threads;
  }
  int blocks = 0;
  EXPECT_EQ(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, null, 1025, 0), kInvalidValue);
  EXPECT_EQ(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nullptr, 32, 0),
            kInvalidHandle);
  int threads = 0;
  EXPECT_EQ(cu.cuDeviceGetAttribute(&threads, kThreadsPerMultiprocessor, 0), kSuccess);
  EXPECT_EQ(threads, 1536);
}

TEST_F(FakeLaunch, ACooperativeGridMustFit) {
  start(a_node(a_device({{"multiprocessors", 2}, {"max_blocks_per_multiprocessor", 4}})));
  const auto on = stream();
  const auto cooperative = [&](unsigned blocks) {
    return cu.cuLaunchCooperativeKernel(null, blocks, 1, 1, 32, 1, 1, 0, on, nullptr);
  };
  EXPECT_EQ(cooperative(8), kSuccess);
  EXPECT_EQ(cooperative(9), kCooperativeLaunchTooLarge);
  EXPECT_EQ(cu.cuLaunchKernel(null, 9, 1, 1, 32, 1, 1, 0, on, nullptr, nullptr), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
}

TEST_F(FakeLaunch, NotEveryDeviceLaunchesCooperatively) {
  start(a_node(a_device({{"cooperative", false}})));
  int supported = -1;
  EXPECT_EQ(cu.cuDeviceGetAttribute(&supported, kCooperativeLaunchSupported, 0), kSuccess);
  EXPECT_EQ(supported, 0);
  const auto on = stream();
  EXPECT_EQ(launch_with(kLaunchCooperative, null, on), kInvalidValue);
  EXPECT_EQ(cu.cuLaunchCooperativeKernel(null, 1, 1, 1, 1, 1, 1, 0, on, nullptr), kInvalidValue);
}

TEST_F(FakeLaunch, UnknownAttributesAreRefused) {
  start();
  EXPECT_EQ(launch_with(LaunchAttributeId{99}, null, stream()), kInvalidValue);
  const LaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, 1};
  EXPECT_EQ(cu.cuLaunchKernelEx(&config, null, nullptr, nullptr), kInvalidValue);
}

// Kernels

TEST_F(FakeLaunch, ASpinLastsAndCountsOnceWhateverItsBlocks) {
  start(a_node(a_device({{"multiprocessors", 1}, {"max_blocks_per_multiprocessor", 4}})));
  const auto on = stream();
  const auto count = new_counter();
  spin = function("launchgap_spin");
  EXPECT_SAME_NS(device_ns(on, [&] { EXPECT_EQ(launch(spin, on, 200'000ull, count), kSuccess); }),
                 250'000);
  EXPECT_EQ(counter(count), 1u);
  unsigned long long ns = 200'000;
  DevicePointer nowhere = 0;
  void* parameters[] = {&ns, &nowhere};
  EXPECT_SAME_NS(
      device_ns(on,
                [&] {
                  EXPECT_EQ(cu.cuLaunchKernel(spin, 5, 1, 1, 32, 1, 1, 0, on, parameters, nullptr),
                            kSuccess);
                }),
      450'000)
      << "two waves";
  EXPECT_EQ(counter(count), 1u);
}

TEST_F(FakeLaunch, AHostSeesASpinsCounterWithoutTheDriver) {
  start(a_node(a_device({{"kernel_ns", 0}})));
  void* host = nullptr;
  ASSERT_EQ(cu.cuMemHostAlloc(&host, sizeof(unsigned), kHostAllocDeviceMap), kSuccess);
  auto& seen = *static_cast<unsigned*>(host);
  seen = 0;
  const auto count = reinterpret_cast<DevicePointer>(host);
  const auto on = stream();
  const double begin = now_ns();
  constexpr unsigned kLaunches = 200;
  spin = function("launchgap_spin");
  for (unsigned i = 0; i < kLaunches; ++i) {
    ASSERT_EQ(launch(spin, on, 1'000'000ull, count), kSuccess);
  }
  const std::atomic_ref<unsigned> counted(seen);
  for (unsigned last = 0; last < kLaunches && now_ns() - begin < 5e9;) {
    const unsigned now_counted = counted.load();
    const double now = now_ns();
    ASSERT_GE(now_counted, last);
    ASSERT_LE(1e6 * now_counted, now - begin) << "never before its time";
    last = now_counted;
  }
  EXPECT_EQ(counted.load(), kLaunches);
  EXPECT_EQ(cu.cuStreamQuery(on), kSuccess);
}

TEST_F(FakeLaunch, ArgumentsArrive) {
  start();
  struct {
    DevicePointer to;
    unsigned words[62];
  } argument{};
  argument.to = new_counter();
  argument.words[61] = 1234;
  ASSERT_EQ(launch(function("launchgap_arguments_256"), nullptr, argument), kSuccess);
  EXPECT_EQ(counter(argument.to), 1234u);
}

TEST_F(FakeLaunch, KernelsThatNeedNativeCodeAreNotInPtx) {
  start();
  Function found = nullptr;
  for (const auto* const name : {"launchgap_dependent", "launchgap_arguments_32760"}) {
    EXPECT_EQ(cu.cuModuleGetFunction(&found, module, name), kNotFound) << name;
    EXPECT_NE(native_function(name), nullptr);
  }
}

TEST_F(FakeLaunch, DependentLaunchesOverlapByWhatIsDescribed) {
  start(a_node(a_device({{"compute_capability", "9.0"}, {"dependent_overlap_ns", 40'000}})));
  const auto on = stream();
  const auto dependent = native_function("launchgap_dependent");
  const auto count = new_counter();
  const auto both = [&](auto launch_one) {
    return device_ns(on, [&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(launch_one(), kSuccess);
    });
  };
  EXPECT_SAME_NS(both([&] { return launch(dependent, on, 50'000ull, count); }), 300'000);
  EXPECT_SAME_NS(
      both([&] { return launch_with(kLaunchProgrammatic, dependent, on, 50'000ull, count); }),
      300'000 - 3 * 40'000)
      << "the gate's end is overlapped too";
  EXPECT_EQ(counter(count), 6u);
}

TEST_F(FakeLaunch, DependentLaunchesNeedCapability9) {
  start();
  EXPECT_EQ(launch_with(kLaunchProgrammatic, null, stream()), kNotSupported);
}

TEST_F(FakeLaunch, ScaledNumbersAreRightAndTakeAsLongAsTheirBytes) {
  start(a_node(a_device({{"kernel_ns", 0}, {"bandwidth_gbs", 1}, {"multiprocessors", 1}})));
  constexpr int kSize = 1000;
  const double bytes = 2.0 * kSize * sizeof(double);
  std::vector<double> from(kSize), to(kSize, -1);
  std::iota(from.begin(), from.end(), 1.0);
  const auto a = memory(kSize * sizeof(double)), b = memory(kSize * sizeof(double));
  ASSERT_EQ(cu.cuMemcpyHtoD_v2(b, from.data(), kSize * sizeof(double)), kSuccess);
  const auto expect_scaled = [&] {
    ASSERT_EQ(cu.cuMemcpyDtoH_v2(to.data(), a, kSize * sizeof(double)), kSuccess);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], from[i] / 4) << i;
  };
  const auto on = stream();
  const auto scale = function("launchgap_scale"), repeated = function("launchgap_scale_repeated");
  EXPECT_SAME_NS(device_ns(on, [&] { EXPECT_EQ(launch(scale, on, a, b, kSize), kSuccess); }),
                 bytes);
  expect_scaled();
  ASSERT_EQ(cu.cuMemsetD8Async(a, 0, kSize * sizeof(double), on), kSuccess);
  const auto arrivals = memory(2 * sizeof(unsigned));
  ASSERT_EQ(cu.cuMemsetD8Async(arrivals, 0, 2 * sizeof(unsigned), on), kSuccess);
  int size = kSize, repetitions = 10;
  auto to_pointer = a, from_pointer = b, count = arrivals;
  void* parameters[] = {&to_pointer, &from_pointer, &size, &repetitions, &count};
  const auto launch_blocks = [&](unsigned blocks) {
    return cu.cuLaunchCooperativeKernel(repeated, blocks, 1, 1, 1024, 1, 1, 0, on, parameters);
  };
  EXPECT_EQ(launch_blocks(3), kCooperativeLaunchTooLarge);
  constexpr double kArrivals = 2.0 * 2 * sizeof(unsigned);
  EXPECT_NEAR(
      device_ns(on, [&] { EXPECT_EQ(launch_blocks(2), kSuccess); }), 10 * (bytes + kArrivals), 1);
  expect_scaled();
  EXPECT_EQ(counter(arrivals), 20u);
  EXPECT_EQ(counter(arrivals + sizeof(unsigned)), 0u) << "the barrier holds";
}

TEST_F(FakeLaunch, BlocksThatWaitForBlocksThatNeverComeTimeOut) {
  start(a_node(a_device({{"multiprocessors", 1}})));
  const auto on = stream();
  DevicePointer a = memory(64), b = memory(64), arrivals = memory(2 * sizeof(unsigned));
  int size = 8, repetitions = 1;
  void* parameters[] = {&a, &b, &size, &repetitions, &arrivals};
  const auto repeated = function("launchgap_scale_repeated");
  ASSERT_EQ(cu.cuLaunchKernel(repeated, 3, 1, 1, 1024, 1, 1, 0, on, parameters, nullptr), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kLaunchTimeout);
}

// Queues, threads, waits

TEST_F(FakeLaunch, ALaunchIntoAFullStreamWaitsForTheFirst) {
  start(a_node(a_device({{"queue_depth", 3}, {"kernel_ns", kLong}})));
  const auto on = stream(), other = stream();
  const double begin = now_ns();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_SOONER(now_ns() - begin, kLong) << "there is room";
  ASSERT_EQ(launch(null, other), kSuccess);
  EXPECT_SOONER(now_ns() - begin, kLong) << "in another stream too";
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_GE(now_ns() - begin, kLong);
  EXPECT_SOONER(now_ns() - begin, 2 * kLong);
  ASSERT_EQ(launch(null, on), kSuccess);
  EXPECT_GE(now_ns() - begin, 2 * kLong);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 5 * kLong);
}

/// What `threads` launches at once take, in streams of their own or in one.
double at_once_ns(FakeLaunch& test, int threads, bool shared) {
  std::vector<Stream> streams;
  for (int i = 0; i < threads; ++i) {
    streams.push_back(shared && i > 0 ? streams[0] : test.stream());
  }
  const double begin = now_ns();
  std::vector<std::thread> running;
  for (const Stream on : streams) {
    running.emplace_back([&test, on] {
      EXPECT_EQ(test.cu.cuCtxSetCurrent(test.context), kSuccess);
      EXPECT_EQ(test.launch(test.null, on), kSuccess);
      WaitForCpu::note_own();
    });
  }
  for (auto& thread : running) thread.join();
  return now_ns() - begin;
}

TEST_F(FakeLaunch, LaunchingCallsWaitForEachOtherWhereTheyShareALock) {
  struct Case {
    const char* lock;
    bool shared;
    double calls;  // in a row
  };
  const Case cases[] = {{"none", false, 1},
                        {"none", true, 1},
                        {"stream", false, 1},
                        {"stream", true, 4},
                        {"process", false, 4},
                        {"process", true, 4}};
  std::vector<Json> devices;
  for (const auto& [lock, shared, calls] : cases) {
    devices.push_back({{"launch_lock", lock}, {"call_ns", kLong}});
  }
  start_devices(devices);
  int ordinal = 0;
  for (const auto& [lock, shared, calls] : cases) {
    use_device(ordinal++);
    const double took = at_once_ns(*this, 4, shared);
    EXPECT_GE(took, calls * kLong) << lock << shared;
    EXPECT_SOONER(took, (calls + 2) * kLong) << lock << shared;
  }
}

TEST_F(FakeLaunch, ThreadsLaunchSideBySide) {
  start(a_node(a_device({{"kernel_ns", 0}, {"call_ns", 0}, {"queue_depth", 8}})));
  constexpr int kThreads = 8;
  constexpr unsigned kLaunches = 500;
  const auto together = new_counter();
  const auto shared = stream();
  std::vector<DevicePointer> counters;
  for (int i = 0; i < kThreads; ++i) counters.push_back(new_counter());
  std::vector<std::thread> threads;
  for (const auto own_counter : counters) {
    threads.emplace_back([&, own_counter] {
      EXPECT_EQ(launch(null, shared), kInvalidContext);
      EXPECT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
      const auto own = stream();
      for (unsigned i = 0; i < kLaunches; ++i) {
        EXPECT_EQ(launch(increment, own, own_counter), kSuccess);
        EXPECT_EQ(launch(increment, shared, together), kSuccess);
      }
      EXPECT_EQ(cu.cuStreamSynchronize(own), kSuccess);
      EXPECT_EQ(cu.cuStreamDestroy_v2(own), kSuccess);
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  EXPECT_EQ(counter(together), kThreads * kLaunches);
  for (const auto own_counter : counters) EXPECT_EQ(counter(own_counter), kLaunches);
}

TEST_F(FakeLaunch, WakingUpTakesAsLongAsTheContextOrTheEventWaits) {
  const Json wake = {{"spin", 0}, {"yield", kLong}, {"block", 3 * kLong}};
  struct Case {
    unsigned context_flags, event_flags;
    double wake_ns;
  };
  const Case cases[] = {{kScheduleAuto, kEventDefault, 0},
                        {kScheduleSpin, kEventDefault, 0},
                        {kScheduleYield, kEventDefault, kLong},
                        {kScheduleBlockingSync, kEventDefault, 3 * kLong},
                        {kScheduleSpin, kEventBlockingSync, 3 * kLong}};
  start_devices(std::vector<Json>(std::size(cases), {{"wake_ns", wake}, {"kernel_ns", 1e6}}));
  int ordinal = 0;
  for (const auto& [context_flags, event_flags, wake_ns] : cases) {
    SCOPED_TRACE(ordinal);
    use_device(ordinal++, context_flags);
    const auto on = stream();
    Event end = nullptr;
    ASSERT_EQ(cu.cuEventCreate(&end, event_flags), kSuccess);
    ASSERT_EQ(launch(null, on), kSuccess);
    ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
    const double waited = took([&] { return cu.cuEventSynchronize(end); });
    EXPECT_TAKES(waited, wake_ns);
    EXPECT_SOONER(took([&] { return cu.cuEventSynchronize(end); }), kLong) << "nothing to wait for";
  }
}

TEST_F(FakeLaunch, PrioritiesAreAsDescribed) {
  start(a_node(a_device({{"priorities", {0, -2}}})));
  int least = 1, greatest = 1, supported = 0;
  EXPECT_EQ(cu.cuCtxGetStreamPriorityRange(&least, &greatest), kSuccess);
  EXPECT_EQ(std::pair(least, greatest), std::pair(0, -2));
  EXPECT_EQ(cu.cuDeviceGetAttribute(&supported, kStreamPrioritiesSupported, 0), kSuccess);
  EXPECT_EQ(supported, 1);
  Stream created = nullptr;
  EXPECT_EQ(cu.cuStreamCreateWithPriority(&created, kStreamNonBlocking, -100), kSuccess);
  EXPECT_EQ(cu.cuStreamCreateWithPriority(&created, 8, 0), kInvalidValue);
}

TEST_F(FakeLaunch, AStreamWaitsForAnEventOfAnother) {
  start();
  const auto first = stream(), second = stream();
  const auto passed = event(), never = event(), end = event();
  const auto value = new_counter();
  ASSERT_EQ(cu.cuMemsetD8Async(value, 1, sizeof(unsigned), first), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(passed, first), kSuccess);
  ASSERT_EQ(cu.cuStreamWaitEvent(second, passed, 0), kSuccess);
  ASSERT_EQ(cu.cuStreamWaitEvent(second, never, 0), kSuccess);
  ASSERT_EQ(launch(increment, second, value), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, second), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(second), kSuccess);
  EXPECT_GE(elapsed_ns(passed, end), 50'000) << "behind it";
  EXPECT_EQ(counter(value), 0x01010102u);
  EXPECT_EQ(cu.cuStreamWaitEvent(second, nullptr, 0), kInvalidHandle);
}

// Modules

TEST_F(FakeLaunch, LoadingTakesAsLongAsItsModeAndTheCacheSay) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fake_jit_" + std::to_string(getpid()));
  struct Case {
    const char* name;
    const char* loading;
    const char* cache;     // nullptr: none
    const char* disabled;  // CUDA_CACHE_DISABLE
    const char* image;
    double load_ns;
    double launch_ns;
  };
  const auto inside = (folder / "deeper").string();
  const char* const kNative =
      "\x7F"
      "ELF";
  const Case cases[] = {
      {"lazy", "LAZY", nullptr, "0", kNative, kLong, 2 * kLong},
      {"eager", "EAGER", nullptr, "0", kNative, 3 * kLong, 0},
      {"PTX", "LAZY", nullptr, "0", kPtx, 5 * kLong, 2 * kLong},
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
    row.cache != nullptr ? setenv("CUDA_CACHE_PATH", row.cache, 1) : unsetenv("CUDA_CACHE_PATH");
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

// What hardware does and a plain node does not

TEST_F(FakeLaunch, LazyLoadingMayBePaidByWhoGetsTheFunction) {
  start(a_node(a_device({{"lazy_ns", kLong}, {"lazy_in", "function"}})));
  Function found = nullptr;
  const auto get = [&] { return cu.cuModuleGetFunction(&found, module, "launchgap_flag"); };
  EXPECT_TAKES(took(get), kLong);
  EXPECT_SOONER(took(get), kLong) << "once";
  const auto on = stream();
  EXPECT_SOONER(took([&] { return launch(null, on); }), kLong) << "it was loaded before";
}

TEST_F(FakeLaunch, AContextsFirstMemsetMayWaitForTheDevice) {
  start(a_node(a_device({{"lazy_memsets", true}, {"kernel_ns", kLong}})));
  const auto on = stream(), other = stream();
  const auto at = memory(4);
  ASSERT_EQ(launch(null, other), kSuccess);
  EXPECT_GE(took([&] { return cu.cuMemsetD8Async(at, 1, 4, on); }), kLong / 2);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  ASSERT_EQ(launch(null, other), kSuccess);
  EXPECT_SOONER(took([&] { return cu.cuMemsetD8Async(at, 1, 4, on); }), kLong / 2) << "once";
}

TEST_F(FakeLaunch, AfterIdlenessTheDeviceRises) {
  constexpr double kKernel = 1e6;
  start(a_node(a_device(
      {{"kernel_ns", kKernel}, {"ramp", {{"ms", 200}, {"factor", 3}, {"idle_ms", 100}}}})));
  const auto on = stream();
  const auto length = [&] { return device_ns(on, [&] { EXPECT_EQ(launch(null, on), kSuccess); }); };
  EXPECT_GT(length(), 1.5 * kKernel);
  for (const double until = now_ns() + 250e6; now_ns() < until;) length();
  EXPECT_LT(length(), 1.1 * kKernel);
  usleep(150'000);
  EXPECT_GT(length(), 1.5 * kKernel) << "it was idle again";
}

TEST_F(FakeLaunch, AContextMadeFarAwayIsSlowForGood) {
  for (const bool near : {true, false}) {
    if (const pid_t child = fork(); child == 0) {
      cpu_set_t allowed;
      CPU_ZERO(&allowed);
      CPU_SET(sched_getcpu(), &allowed);
      sched_setaffinity(0, sizeof allowed, &allowed);
      const int here = sched_getcpu();
      start(a_node(a_device({{"kernel_ns", 1e6},
                             {"near", {{"cpus", {near ? here : here + 1}}, {"far_factor", 2}}}})));
      const auto on = stream();
      const double length = device_ns(on, [&] { EXPECT_EQ(launch(null, on), kSuccess); });
      _exit(HasFailure() || (near ? length > 1.5e6 : length < 1.5e6) ? 1 : 0);
    } else {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << (near ? "near" : "far");
    }
  }
}

TEST_F(FakeLaunch, NoKernelWaitsForLessThanTwoStepsOfTheGlobalTimer) {
  start(a_node(a_device({{"kernel_ns", 0}, {"global_timer_ns", 1'000'000}})));
  const auto on = stream();
  const auto spin = function("launchgap_spin");
  const auto length = [&](unsigned long long wanted) {
    return device_ns(on, [&] { EXPECT_EQ(launch(spin, on, wanted, DevicePointer{0}), kSuccess); });
  };
  for (int i = 0; i < 5; ++i) {
    const double shortest = length(1);
    EXPECT_GE(shortest, 1e6);
    EXPECT_LE(shortest, 2e6 + 1);
    EXPECT_SAME_NS(length(5'000'000), 5e6);
  }
}

TEST_F(FakeLaunch, BlockingLaunchesWaitForTheirKernels) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  start(a_node(a_device({{"kernel_ns", kLong}})));
  const auto on = stream();
  EXPECT_GE(took([&] { return launch(null, on); }), kLong);
}

// Libraries

TEST_F(FakeLaunch, ALibrarysFirstHandleTakesLonger) {
  start(a_node(a_device({{"library_ns", kLong}})));
  Cublas blas;
  CublasHandle handle = nullptr;
  EXPECT_TAKES(took([&] { return blas.cublasCreate_v2(&handle); }), kLong);
  EXPECT_SOONER(took([&] { return blas.cublasCreate_v2(&handle); }), kLong);
}

TEST_F(FakeLaunch, ALibrarysCallTakesLongerBeforeItLaunches) {
  start(a_node(a_device({{"library_call_ns", kLong}})));
  Cublas blas;
  CublasHandle handle = nullptr;
  ASSERT_EQ(blas.cublasCreate_v2(&handle), kCublasSuccess);
  const auto a = memory(4), b = memory(4), c = memory(4);
  const float one = 1, zero = 0;
  const auto pointer = [](DevicePointer address) { return reinterpret_cast<float*>(address); };
  const double begin = now_ns();
  const double called = took([&] {
    return blas.cublasSgemm_v2(
        handle, 0, 0, 1, 1, 1, &one, pointer(a), 1, pointer(b), 1, &zero, pointer(c), 1);
  });
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  EXPECT_GE(called, kLong);
  EXPECT_SOONER(now_ns() - begin, 2 * kLong) << "once for both";
  EXPECT_EQ(blas.cublasDestroy_v2(handle), kCublasSuccess);
}

const cuda::RuntimePlugin& runtime_plugin() {
  void* const handle = open_library(cuda::kRuntimePluginFile);
  using Get = const cuda::RuntimePlugin*();
  return *reinterpret_cast<Get*>(dlsym(handle, cuda::kRuntimePluginSymbol))();
}

TEST_F(FakeLaunch, TheRuntimesLaunchesCostWhatIsDescribed) {
  start(a_node(a_device({{"runtime", {{"chevron_ns", kLong}, {"ex_ns", 2 * kLong}}}})));
  const auto& runtime = runtime_plugin();
  EXPECT_EQ(runtime.runtime_version, 13000);
  ASSERT_EQ(runtime.prepare(), 0);
  const auto on = stream();
  const double chevron = took([&] { return runtime.launch_chevron(on); });
  const double launch_ex = took([&] { return runtime.launch_ex(on); });
  EXPECT_TAKES(chevron, kLong);
  EXPECT_TAKES(launch_ex, 2 * kLong);
  const auto count = new_counter();
  auto* const counts = reinterpret_cast<unsigned*>(count);
  EXPECT_EQ(runtime.count_chevron(on, counts), 0);
  EXPECT_EQ(runtime.count_ex(on, counts), 0);
  EXPECT_EQ(counter(count), 0u) << "nobody waited";
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(counter(count), 2u);
}

TEST_F(FakeLaunch, TheRuntimeMayFindTheDriverTooOld) {
  start(a_node(a_device({{"runtime", nullptr}})));
  const auto& runtime = runtime_plugin();
  EXPECT_EQ(runtime.prepare(), 35);
  EXPECT_EQ(runtime.launch_ex(nullptr), 35);
  EXPECT_STREQ(runtime.name(35), "cudaErrorInsufficientDriver");
  EXPECT_STREQ(runtime.text(35), "CUDA driver version is insufficient for CUDA runtime version");
}

}  // namespace
}  // namespace launchgap::fake
