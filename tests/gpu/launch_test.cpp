// Launches and streams: what is launched runs once, in order, when it may.
#include <cstring>
#include <thread>
#include <vector>

#include "harness/core/clock.h"
#include "harness/device/device.h"
#include "harness/measure/device_timer.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

class GpuLaunch : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    increment = device->load(kernels::increment_kernel);
    flag = device->load(kernels::flag_kernel);
  }
  void count(Stream& on, const DeviceCounter& counter, int times = 1) {
    for (int i = 0; i < times; ++i) launch(on, *increment, {1, 1}, counter.address());
  }
  void raise(Stream& on, const SharedWords& words, int word, unsigned value) {
    launch(on, *flag, {1, 1}, words.on_device(word), value);
  }
  std::unique_ptr<Kernel> increment, flag;
};

TEST_F(GpuLaunch, RunsOnceAndInOrder) {
  const DeviceCounter counter(*device);
  count(*stream, counter, 10'000);
  stream->fill_bytes(counter.address(), 1, sizeof(unsigned));
  count(*stream, counter, 2);
  stream->wait();
  EXPECT_EQ(counter.value(), 0x01010103u);
}

/// As many as no launch queue takes: the call waits until there is room.
TEST_F(GpuLaunch, AFullQueueLosesNothing) {
  const auto gate = device->load(kernels::gate_kernel);
  SharedWords words(*device, 2);
  const DeviceCounter counter(*device);
  count(*stream, counter);  // loads it
  stream->wait();
  constexpr unsigned long long kHeldNs = 50'000'000;
  launch(*stream, *gate, {1, 1}, words.on_device(0), words.on_device(1), kHeldNs);
  count(*stream, counter, 20'000);
  stream->wait();
  EXPECT_EQ(counter.value(), 20'001u);
  EXPECT_EQ(words[1], 1u) << "nobody opened the gate";
}

TEST_F(GpuLaunch, ReturnsBeforeItsWorkBeginsAndAWaitLastsUntilItIsOver) {
  SharedWords words(*device, 1);
  Gate gate(*device, *stream);
  void* const word = words.on_device(0);
  launch(*stream, *increment, {1, 1}, word);
  stream->wait();
  ASSERT_EQ(words[0], 1u);
  gate.close();
  launch(*stream, *increment, {1, 1}, word);
  busy_for(20);
  EXPECT_EQ(words[0], 1u);
  gate.open();
  stream->wait();
  EXPECT_EQ(words[0], 2u);
  EXPECT_FALSE(gate.timed_out());
}

TEST_F(GpuLaunch, AWaitLastsAsLongAsTheKernel) {
  const auto spin = device->load(kernels::spin_kernel);
  constexpr unsigned long long kSpinNs = 20'000'000;
  void* const nothing = nullptr;
  const std::int64_t begin = now_ns();
  launch(*stream, *spin, {1, 1}, kSpinNs, nothing);
  stream->wait();
  EXPECT_GE(now_ns() - begin, 0.97 * kSpinNs);
  const std::int64_t again = now_ns();
  launch(*stream, *spin, {1, 1}, kSpinNs, nothing);
  device->check();
  EXPECT_GE(now_ns() - again, 0.97 * kSpinNs);
}

TEST_F(GpuLaunch, AStreamThatIsDestroyedFinishesItsWork) {
  const auto spin = device->load(kernels::spin_kernel);
  const DeviceCounter counter(*device);
  {
    const auto short_lived = device->create_stream();
    launch(*short_lived, *spin, {1, 1}, 5'000'000ull, counter.address());
    count(*short_lived, counter);
  }
  device->check();
  EXPECT_EQ(counter.value(), 2u);
}

TEST_F(GpuLaunch, TakesArgumentsOfEverySizeAndReadsThemAtOnce) {
  const DeviceCounter counter(*device);
  unsigned tested = 0;
  for (const std::size_t bytes : kernels::argument_sizes()) {
    std::unique_ptr<Kernel> kernel;
    try {
      kernel = device->load(*kernels::arguments_kernel(bytes));
    } catch (const Unsupported&) {
      continue;  // the largest needs compute capability 7.0, and native code
    }
    std::vector<unsigned> argument(bytes / sizeof(unsigned), 0xABCD);
    void* const to = counter.address();
    std::memcpy(argument.data(), &to, sizeof to);
    argument.back() = 1000 + ++tested;
    void* arguments[] = {argument.data()};
    Gate gate(*device, *stream);
    stream->launch(*kernel, {1, 1}, arguments);  // it may be loaded only now, and wait for that
    gate.close();
    stream->fill_bytes(to, 0, sizeof(unsigned));
    stream->launch(*kernel, {1, 1}, arguments);
    std::ranges::fill(argument, 0u);
    gate.open();
    stream->wait();
    EXPECT_EQ(counter.value(), 1000 + tested) << bytes << " bytes";
  }
  EXPECT_GE(tested, 4u);
}

TEST_F(GpuLaunch, EveryThreadOfEveryBlockRuns) {
  const auto scale = device->load(kernels::scale_kernel);
  for (const int size : {1, 1000, 100'000}) {
    const auto bytes = static_cast<std::size_t>(size) * sizeof(double);
    const auto from = device->allocate_shared(bytes);
    const auto to = device->allocate(bytes);
    for (int i = 0; i < size; ++i) static_cast<double*>(from->address())[i] = i + 1;
    const unsigned threads = 256, blocks = (static_cast<unsigned>(size) + threads - 1) / threads;
    launch(*stream, *scale, {blocks, threads}, to->address(), device->device_address(*from), size);
    stream->wait();
    std::vector<double> scaled(static_cast<std::size_t>(size));
    device->read(*to, 0, scaled.data(), bytes);
    for (int i = 0; i < size; ++i) ASSERT_EQ(scaled[static_cast<std::size_t>(i)], (i + 1) / 4.0);
  }
}

TEST_F(GpuLaunch, CooperativeBlocksAreOnTheDeviceAtOnceAndNoMoreThanFit) {
  const auto repeated = device->load(kernels::scale_repeated_kernel);
  constexpr unsigned kThreads = 128;
  constexpr int kSize = 1000, kRepetitions = 10;
  const int resident = device->resident_blocks(*repeated, kThreads);
  ASSERT_GE(resident, device->facts().multiprocessors.value_or(1));
  const auto a = device->allocate(kSize * sizeof(double)),
             b = device->allocate(kSize * sizeof(double)),
             arrivals = device->allocate(2 * sizeof(unsigned));
  void *to = a->address(), *from = b->address(), *count = arrivals->address();
  int size = kSize, repetitions = kRepetitions;
  void* arguments[] = {&to, &from, &size, &repetitions, &count};
  const auto blocks = static_cast<unsigned>(resident);
  stream->fill_bytes(from, 0, b->bytes());
  stream->fill_bytes(count, 0, arrivals->bytes());
  SKIP_UNLESS_SUPPORTED(stream->launch_cooperative(*repeated, {blocks, kThreads}, arguments));
  stream->wait();
  unsigned seen[2] = {};
  device->read(*arrivals, 0, seen, sizeof seen);
  EXPECT_EQ(seen[0], blocks * kRepetitions);
  EXPECT_EQ(seen[1], 0u) << "the barrier of the grid holds";
  constexpr int kTooLarge = 720;
  EXPECT_TRUE(fails_with(kTooLarge, [&] {
    stream->launch_cooperative(*repeated, {blocks + 1, kThreads}, arguments);
  }));
}

TEST_F(GpuLaunch, DependentLaunchesDoTheirWorkInOrder) {
  std::unique_ptr<Kernel> dependent;
  const DeviceCounter counter(*device);
  unsigned long long nanoseconds = 1000;
  void* address = counter.address();
  void* arguments[] = {&nanoseconds, &address};
  SKIP_UNLESS_SUPPORTED(dependent = device->load(kernels::dependent_kernel));
  SKIP_UNLESS_SUPPORTED(stream->launch_dependent(*dependent, {1, 1}, arguments));
  for (int i = 1; i < 200; ++i) stream->launch_dependent(*dependent, {1, 1}, arguments);
  stream->wait();
  EXPECT_EQ(counter.value(), 200u) << "they add without an atomic";
}

TEST_F(GpuLaunch, TheRuntimesLaunchesRunInTheSameStreams) {
  for (const RuntimeApi api : {RuntimeApi::launch_ex, RuntimeApi::chevron}) {
    std::unique_ptr<NullLauncher> runtime;
    SKIP_UNLESS_SUPPORTED(runtime = device->runtime_launcher(api));
    const DeviceCounter counter(*device);
    runtime->launch(*stream);
    stream->fill_bytes(counter.address(), 1, sizeof(unsigned));
    for (int i = 0; i < 100; ++i) runtime->count(*stream, counter.address());
    count(*stream, counter);
    stream->wait();
    EXPECT_EQ(counter.value(), 0x01010101u + 101);
  }
}

// Streams beside each other

TEST_F(GpuLaunch, AStreamWaitsForAnEventOfAnotherAndForNothingElse) {
  const auto waiting = device->create_stream(), free = device->create_stream();
  const auto passed = device->create_event(EventUse::order),
             never = device->create_event(EventUse::order);
  const DeviceCounter counter(*device);
  SharedWords words(*device, 2);
  count(*stream, counter);
  raise(*stream, words, 0, 1);  // what is loaded lazily is there then
  stream->wait();
  Gate gate(*device, *stream);
  gate.close();
  count(*stream, counter);
  stream->record(*passed);
  waiting->wait_for(*passed);
  waiting->wait_for(*never);  // was not recorded, so there is nothing to wait for
  waiting->fill_bytes(counter.address(), 1, sizeof(unsigned));
  count(*waiting, counter);
  raise(*waiting, words, 0, 2);
  raise(*free, words, 1, 2);
  EXPECT_TRUE(words.becomes(1, 2));
  free->wait();
  busy_for(10);
  EXPECT_EQ(words[0], 1u) << "behind the gate";
  EXPECT_EQ(counter.value(), 1u);
  gate.open();
  waiting->wait();
  stream->wait();
  EXPECT_EQ(words[0], 2u);
  EXPECT_EQ(counter.value(), 0x01010102u) << "in the order of the event";
  EXPECT_FALSE(gate.timed_out());
}

TEST_F(GpuLaunch, TheDefaultStreamTakesTurnsWithThoseThatAreOrderedWithItAlone) {
  const auto ordered = device->create_stream({.ordered_with_default = true, .priority = {}});
  const auto usual = device->default_stream();
  SharedWords words(*device, 3);
  for (int i = 0; i < 3; ++i) raise(*stream, words, i, 1);
  stream->wait();
  Gate gate(*device, *ordered);
  gate.close();
  raise(*usual, words, 0, 2);
  raise(*ordered, words, 1, 2);
  raise(*stream, words, 2, 2);
  EXPECT_TRUE(words.becomes(2, 2)) << "any other stream goes on";
  stream->wait();
  busy_for(10);
  EXPECT_EQ(words[0], 1u) << "the default stream waits";
  EXPECT_EQ(words[1], 1u) << "and this one for it, too";
  gate.open();
  ordered->wait();
  EXPECT_EQ(words[0], 2u) << "was first";
  EXPECT_EQ(words[1], 2u);
  EXPECT_FALSE(gate.timed_out());
}

TEST_F(GpuLaunch, StreamsHavePriorities) {
  const Device::Priorities range = device->stream_priorities();
  EXPECT_GE(range.lowest, range.highest) << "the higher one is the smaller number";
  const DeviceCounter counter(*device);
  for (int priority = range.highest; priority <= range.lowest; ++priority) {
    const auto its_own =
        device->create_stream({.ordered_with_default = false, .priority = priority});
    count(*its_own, counter);
    its_own->wait();
  }
  EXPECT_EQ(counter.value(), static_cast<unsigned>(range.lowest - range.highest + 1));
}

TEST_F(GpuLaunch, ThreadsLaunchSideBySideInStreamsOfTheirOwnAndInOne) {
  constexpr int kThreads = 4, kLaunches = 300;
  const DeviceCounter together(*device);
  std::vector<std::unique_ptr<DeviceCounter>> counters;
  for (int i = 0; i < kThreads; ++i) counters.push_back(std::make_unique<DeviceCounter>(*device));
  std::vector<std::thread> threads;
  for (const auto& its_counter : counters) {
    threads.emplace_back([&, this] {
      device->use_on_this_thread();
      const auto its_stream = device->create_stream();
      for (int i = 0; i < kLaunches; ++i) {
        count(*its_stream, *its_counter);
        count(*stream, together);
        if (i % 50 == 0) its_stream->wait();
      }
      its_stream->wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream->wait();
  for (const auto& its_counter : counters) EXPECT_EQ(its_counter->value(), 0u + kLaunches);
  EXPECT_EQ(together.value(), 0u + kThreads * kLaunches);
}

// A host that looks, and never calls the driver

TEST_F(GpuLaunch, AHostSeesAFlagWhenWhatIsAheadOfItIsDone) {
  SharedWords words(*device, 2);
  const DeviceCounter counter(*device);
  raise(*stream, words, 0, 1);
  EXPECT_TRUE(words.becomes(0, 1)) << "though nobody waits";
  count(*stream, counter);
  stream->wait();
  Gate gate(*device, *stream);
  gate.close();
  count(*stream, counter, 3);
  raise(*stream, words, 0, 2);
  raise(*stream, words, 1, 3);
  busy_for(10);
  EXPECT_EQ(words[0], 1u);
  gate.open();
  EXPECT_TRUE(words.becomes(1, 3));
  EXPECT_EQ(words[0], 2u);
  EXPECT_EQ(counter.value(), 4u) << "what is ahead of a flag is done when it rises";
  stream->wait();
}

TEST_F(GpuLaunch, AHostCountsKernelsAsTheyEnd) {
  const auto spin = device->load(kernels::spin_kernel);
  SharedWords words(*device, 1);
  constexpr unsigned kLaunches = 100;
  const std::int64_t begin = now_ns();
  for (unsigned i = 0; i < kLaunches; ++i)
    launch(*stream, *spin, {1, 1}, 1'000'000ull, words.on_device(0));
  for (unsigned seen = 0; seen < kLaunches && now_ns() - begin < 10'000'000'000;) {
    const unsigned counted = words[0];
    ASSERT_GE(counted, seen);
    ASSERT_LE(0.97e6 * counted, static_cast<double>(now_ns() - begin)) << "never before its time";
    seen = counted;
  }
  EXPECT_EQ(words[0], kLaunches);
  stream->wait();
}

TEST_F(GpuLaunch, AnEchoAnswersEveryRoundAndGivesUpWhenNobodyAsks) {
  const auto echo = device->load(kernels::echo_kernel);
  SharedWords words(*device, 2);
  constexpr unsigned kRounds = 50;
  const auto answer = [&](unsigned long long timeout_ns) {
    launch(*stream, *echo, {1, 1}, words.on_device(0), words.on_device(1), kRounds, timeout_ns);
  };
  answer(5'000'000'000);
  for (unsigned i = 1; i <= kRounds; ++i) {
    words[0] = i;
    ASSERT_TRUE(words.becomes(1, i));
  }
  stream->wait();
  words[0] = 0;
  words[1] = 0;
  const std::int64_t begin = now_ns();
  answer(5'000'000);
  stream->wait();
  EXPECT_GE(now_ns() - begin, 0.97 * 5'000'000);
  EXPECT_EQ(words[1], 0u);
}

}  // namespace
}  // namespace launchgap
