// Tracing: every launch has its call and its kernel, with the times that they had. In a process of
// its own, `launchgap-gpu-test --traced`.
#include <algorithm>
#include <barrier>
#include <ctime>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "harness/core/clock.h"
#include "harness/device/allocator.h"
#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/device/shape_text.h"
#include "harness/measure/device_timer.h"
#include "harness/trace/canary.h"
#include "harness/trace/join.h"
#include "harness/trace/trace_clock.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using activity::Call;
using activity::KernelRun;
using activity::Trace;

/// Records of something, joined.
struct Seen {
  Trace trace;
  Joined joined;

  std::string name(const KernelRun& kernel) const { return trace.name(kernel.name); }
  const Call& call_of(const Launch& launch) const { return trace.calls[launch.call]; }
  std::vector<KernelRun> kernels_of(const Launch& launch) const {
    std::vector<KernelRun> found;
    for (const std::uint32_t i : joined.kernels_of(launch)) found.push_back(trace.kernels[i]);
    return found;
  }
};

class GpuTraced : public Gpu {
 protected:
  void SetUp() override {
    if (!tracer) GTEST_SKIP() << "CUPTI must be there before the driver: needs --traced";
    Gpu::SetUp();
    null = device->load(kernels::null_kernel);
    // Tracing may begin with a burst of corrupt records.
    static Canary canary;
    if (canary.tries == 0) check_with_canary(*tracer, *device, canary);
    conversion_error_ns = canary.scatter_ns;
  }

  /// The records of what `work` does, and waits for, of which there are so many kernels. Now and
  /// then a record is impossible: a second and a third time are as good.
  Seen seen(std::size_t kernels, const std::function<void()>& work) {
    for (int again = 0;; ++again) {
      Trace before;
      tracer->collect(before, true);
      TraceClock clock([] { return tracer->clock_ns(); });
      clock.bracket();
      work();
      Seen found;
      for (int attempt = 0; attempt < 5; ++attempt) {
        tracer->collect(found.trace, attempt > 0);
        if (found.trace.kernels.size() >= kernels) break;
        busy_for(10);
      }
      clock.bracket();
      EXPECT_EQ(clock.step_ns(), 0);
      found.joined = join(found.trace, clock.uncertainty_ns() + conversion_error_ns);
      if (found.joined.counts.impossible() == 0 || again == 2) return found;
    }
  }

  /// Every kernel has its launch, none is impossible, and there are so many of both.
  static void expect_whole(const Seen& found, std::uint64_t launches, std::uint64_t kernels) {
    const JoinCounts& counts = found.joined.counts;
    EXPECT_EQ(counts.describe_impossible(), "");
    EXPECT_EQ(counts.launches, launches);
    EXPECT_EQ(counts.kernels, kernels);
    EXPECT_EQ(counts.joined, kernels);
  }

  std::unique_ptr<Kernel> null;
  std::int64_t conversion_error_ns = 0;
};

TEST_F(GpuTraced, TheClockIsThatOfTheWallAndGoesOn) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t first = tracer->clock_ns();
  EXPECT_NEAR(static_cast<double>(first),
              static_cast<double>(wall.tv_sec) * 1e9 + static_cast<double>(wall.tv_nsec),
              1e9);
  busy_for(1);
  EXPECT_GE(tracer->clock_ns() - first, 900'000);
}

TEST_F(GpuTraced, EveryLaunchHasItsCallAndItsKernel) {
  constexpr int kLaunches = 200;
  const std::int64_t begin = tracer->clock_ns();
  const Seen found = seen(kLaunches, [&] {
    for (int i = 0; i < kLaunches; ++i) {
      launch(*stream, *null, {1, 1});
      stream->wait();
    }
  });
  expect_whole(found, kLaunches, kLaunches);
  std::set<std::uint32_t> numbers;
  for (const Launch& traced : found.joined.launches) {
    const Call& call = found.call_of(traced);
    numbers.insert(call.correlation);
    ASSERT_EQ(traced.kernel_count, 1u);
    const KernelRun kernel = found.kernels_of(traced)[0];
    EXPECT_EQ(found.name(kernel), "launchgap_null");
    EXPECT_EQ(call.domain, activity::Domain::driver);
    EXPECT_EQ(kernel.correlation, call.correlation);
    EXPECT_GE(call.begin_ns, begin - 1000);
    EXPECT_LT(call.begin_ns, call.end_ns);
    EXPECT_LE(kernel.end_ns, tracer->clock_ns() + conversion_error_ns);
  }
  EXPECT_EQ(numbers.size(), 0u + kLaunches) << "a number of its own for each";
}

/// More than any buffer holds, and without a wait for each.
TEST_F(GpuTraced, NothingIsLostOfManyLaunches) {
  constexpr int kLaunches = 20'000;
  const Seen found = seen(kLaunches, [&] {
    for (int i = 0; i < kLaunches; ++i) {
      launch(*stream, *null, {1, 1});
      if (i % 100 == 99) stream->wait();
    }
  });
  const JoinCounts& counts = found.joined.counts;
  EXPECT_EQ(counts.launches, 0u + kLaunches);
  EXPECT_EQ(counts.kernels, 0u + kLaunches);
  // As many as measuring puts up with.
  EXPECT_LE(static_cast<double>(counts.impossible()), 0.001 * kLaunches)
      << counts.describe_impossible();
  EXPECT_EQ(counts.dropped, 0u);
}

TEST_F(GpuTraced, KernelsLastAsLongAsTheyDidAndOneBeginsWhenTheOneAheadEnds) {
  const auto spin = device->load(kernels::spin_kernel);
  const auto begin = device->create_event(), end = device->create_event();
  constexpr int kSpins = 10;
  constexpr double kSpinNs = 1e6;
  double between_events = 0;
  Seen found;
  // Longer only where something else had the device.
  constexpr double kMost = kSpins * (1.05 * kSpinNs + 20'000);
  shortest(kMost, [&] {
    found = seen(kSpins, [&] {
      stream->record(*begin);
      for (int i = 0; i < kSpins; ++i)
        launch(*stream, *spin, {2, 64}, 1'000'000ull, static_cast<void*>(nullptr));
      stream->record(*end);
      stream->wait();
    });
    between_events = device->elapsed_ns(*begin, *end);
    return between_events;
  });
  EXPECT_LE(between_events, kMost);
  expect_whole(found, kSpins, kSpins);
  ASSERT_EQ(found.trace.kernels.size(), 0u + kSpins);
  auto kernels = found.trace.kernels;
  std::ranges::sort(kernels, {}, &KernelRun::begin_ns);
  // The device's clock has steps of up to a microsecond.
  const auto error_ns = static_cast<double>(conversion_error_ns) + 2000;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(found.name(kernels[i]), "launchgap_spin");
    EXPECT_EQ(kernels[i].grid[0], 2);
    EXPECT_EQ(kernels[i].block[0], 64);
    EXPECT_GE(static_cast<double>(kernels[i].end_ns - kernels[i].begin_ns),
              0.97 * kSpinNs - error_ns);
    if (i > 0) {
      EXPECT_GE(static_cast<double>(kernels[i].begin_ns - kernels[i - 1].end_ns), -error_ns);
    }
  }
  const auto traced = static_cast<double>(kernels.back().end_ns - kernels.front().begin_ns);
  EXPECT_NEAR(traced, between_events, 0.05 * between_events) << "events agree";
}

TEST_F(GpuTraced, AGateLastsUntilItIsOpened) {
  Gate gate(*device, *stream);
  std::int64_t closed = 0, opened = 0;
  const Seen found = seen(2, [&] {
    closed = now_ns();
    gate.close();
    launch(*stream, *null, {1, 1});
    const std::int64_t launched = now_ns();
    busy_for(5);
    opened = now_ns() - launched;
    gate.open();
    stream->wait();
    closed = now_ns() - closed;
  });
  expect_whole(found, 2, 2);
  ASSERT_EQ(found.joined.launches.size(), 2u);
  const auto kernels = found.kernels_of(found.joined.launches[0]);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(found.name(kernels[0]), "launchgap_gate");
  const auto lasted = static_cast<double>(kernels[0].end_ns - kernels[0].begin_ns);
  EXPECT_LE(lasted, static_cast<double>(closed + conversion_error_ns + 2000));
  EXPECT_GE(lasted, 0.5 * static_cast<double>(opened)) << "it began while the host was busy";
}

TEST_F(GpuTraced, KernelsThatTheHostPollsAreTracedAlike) {
  const auto flag = device->load(kernels::flag_kernel), echo = device->load(kernels::echo_kernel);
  SharedWords words(*device, 3);
  const Seen found = seen(2, [&] {
    for (int i = 0; i < 3; ++i) words[i] = 0;
    launch(*stream, *flag, {1, 1}, words.on_device(0), 1u);
    launch(*stream, *echo, {1, 1}, words.on_device(1), words.on_device(2), 1u, 5'000'000'000ull);
    EXPECT_TRUE(words.becomes(0, 1));
    words[1] = 1;
    EXPECT_TRUE(words.becomes(2, 1));
    stream->wait();
  });
  expect_whole(found, 2, 2);
  std::multiset<std::string> names;
  for (const KernelRun& kernel : found.trace.kernels) names.insert(found.name(kernel));
  EXPECT_EQ(names, (std::multiset<std::string>{"launchgap_echo", "launchgap_flag"}));
}

TEST_F(GpuTraced, AWaitThatWaitedHasARecordAndAMemsetIsNoKernel) {
  const auto spin = device->load(kernels::spin_kernel);
  const auto buffer = device->allocate(4096);
  const Seen found = seen(1, [&] {
    launch(*stream, *spin, {1, 1}, 5'000'000ull, static_cast<void*>(nullptr));
    stream->fill_bytes(buffer->address(), 1, buffer->bytes());
    stream->wait();
  });
  expect_whole(found, 1, 1);
  std::int64_t longest = 0;
  for (const activity::Wait& wait : found.trace.waits)
    longest = std::max(longest, wait.end_ns - wait.begin_ns);
  // The host may have come late to it.
  EXPECT_GT(longest, 0);
  EXPECT_LT(longest, 1'000'000'000);
}

TEST_F(GpuTraced, KernelsOfAGraphHaveTheNumberOfItsLaunch) {
  const auto increment = device->load(kernels::increment_kernel);
  const DeviceCounter counter(*device);
  std::unique_ptr<ExecutableGraph> executable;
  SKIP_UNLESS_SUPPORTED(executable = device->instantiate(*device->capture(*stream, [&] {
    launch(*stream, *null, {1, 1});
    stream->fill_bytes(counter.address(), 0, sizeof(unsigned));
    for (int i = 0; i < 3; ++i) launch(*stream, *increment, {1, 1}, counter.address());
  })));
  const Seen found = seen(8, [&] {
    for (int i = 0; i < 2; ++i) executable->launch(*stream);
    stream->wait();
  });
  expect_whole(found, 2, 8);
  for (const Launch& traced : found.joined.launches) {
    EXPECT_EQ(traced.kernel_count, 4u);
    for (const KernelRun& kernel : found.kernels_of(traced))
      EXPECT_EQ(kernel.correlation, found.call_of(traced).correlation);
  }
}

TEST_F(GpuTraced, TheKernelsOfLibrariesHaveTheirLaunch) {
  const auto a = device->allocate(1 << 20), b = device->allocate(1 << 20),
             c = device->allocate(1 << 20);
  std::unique_ptr<Matmul> matmul;
  SKIP_UNLESS_SUPPORTED(matmul = device->matmul(*stream, MatmulShape::square(256, kFp32)));
  const ConvolutionShape shape = convolution_shape("1x16x32x32-16x3x3-p1");
  std::unique_ptr<Convolution> convolution;
  SKIP_UNLESS_SUPPORTED(convolution = device->convolution(*stream, shape));
  convolution->add_tensors(*a, *b);
  const std::function<void()> operations[] = {[&] { matmul->enqueue(*a, *b, *c); },
                                              [&] { convolution->enqueue(0); }};
  for (const auto& enqueue : operations) {
    enqueue();  // what is loaded lazily is there then
    stream->wait();
    constexpr unsigned kTimes = 3;
    const Seen found = seen(kTimes, [&] {
      for (unsigned i = 0; i < kTimes; ++i) enqueue();
      stream->wait();
    });
    const JoinCounts& counts = found.joined.counts;
    EXPECT_EQ(counts.describe_impossible(), "");
    EXPECT_GE(counts.kernels, kTimes);
    EXPECT_EQ(counts.kernels % kTimes, 0u) << "as many for each";
    EXPECT_EQ(counts.joined, counts.kernels);
    EXPECT_EQ(counts.launches_without_kernel, 0u);
  }
}

TEST_F(GpuTraced, TheRuntimesLaunchesHaveRecordsOfTheirOwn) {
  for (const RuntimeApi api : {RuntimeApi::launch_ex, RuntimeApi::chevron}) {
    std::unique_ptr<NullLauncher> runtime;
    SKIP_UNLESS_SUPPORTED(runtime = device->runtime_launcher(api));
    runtime->launch(*stream);
    stream->wait();
    const Seen found = seen(10, [&] {
      for (int i = 0; i < 10; ++i) runtime->launch(*stream);
      stream->wait();
    });
    expect_whole(found, 10, 10);
    for (const Launch& traced : found.joined.launches)
      EXPECT_EQ(found.call_of(traced).domain, activity::Domain::runtime) << "the outermost";
  }
}

TEST_F(GpuTraced, ThreadsHaveTheirOwnLaunches) {
  constexpr std::size_t kThreads = 4, kLaunches = 100;
  const Seen found = seen(kThreads * kLaunches, [&] {
    // The number of a thread or a stream that is gone may be given to another.
    std::barrier all_done(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        device->use_on_this_thread();
        const auto its_own = device->create_stream();
        for (std::size_t j = 0; j < kLaunches; ++j) launch(*its_own, *null, {1, 1});
        its_own->wait();
        all_done.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  expect_whole(found, kThreads * kLaunches, kThreads * kLaunches);
  std::set<std::uint32_t> numbers, threads;
  std::map<std::uint32_t, int> streams;
  for (const Launch& traced : found.joined.launches) {
    numbers.insert(found.call_of(traced).correlation);
    threads.insert(found.call_of(traced).thread);
    for (const KernelRun& kernel : found.kernels_of(traced)) ++streams[kernel.stream];
  }
  EXPECT_EQ(numbers.size(), 0u + kThreads * kLaunches);
  EXPECT_EQ(threads.size(), 0u + kThreads);
  EXPECT_EQ(streams.size(), 0u + kThreads);
}

TEST_F(GpuTraced, AllocationsHaveTheirMemory) {
  for (const AllocatorKind kind : {AllocatorKind::direct, AllocatorKind::pool}) {
    std::unique_ptr<Allocator> allocator;
    try {
      allocator = device->allocator(*stream, kind);
    } catch (const Unsupported&) {
      continue;  // no pools
    }
    constexpr std::size_t kBytes = 3 << 20;
    void* block = nullptr;
    const Seen found = seen(0, [&] {
      block = allocator->allocate(kBytes);
      allocator->release(block, kBytes);
      stream->wait();
    });
    for (const bool release : {false, true}) {
      const auto record = std::ranges::find_if(found.trace.memory, [&](const auto& memory) {
        return memory.release == release &&
               memory.address == reinterpret_cast<std::uintptr_t>(block);
      });
      ASSERT_NE(record, found.trace.memory.end()) << (release ? "release" : "allocation");
      EXPECT_EQ(record->bytes, kBytes);
      EXPECT_EQ(record->pool != 0, kind == AllocatorKind::pool);
      const auto purpose = release ? activity::Purpose::release : activity::Purpose::allocate;
      const auto call =
          std::ranges::find(found.trace.calls, record->correlation, &Call::correlation);
      ASSERT_NE(call, found.trace.calls.end());
      EXPECT_EQ(call->purpose, purpose);
      EXPECT_LT(call->begin_ns, call->end_ns);
    }
  }
}

}  // namespace
}  // namespace launchgap
