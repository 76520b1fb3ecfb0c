// What hosts that poll mapped memory, and never call the driver, see of kernels.
#include <atomic>
#include <cmath>
#include <sched.h>
#include <thread>

#include "tests/fake_cuda/fixture.h"

namespace launchgap::fake {
namespace {

class FakePolling : public FakeCuda {
 protected:
  /// A node, and two words of mapped memory.
  void start_polling(const Json& device = Json::object(), const Json& faults = Json::array()) {
    start(a_node(a_device(device), faults));
    flag = function("launchgap_flag");
    echo = function("launchgap_echo");
    on = stream();
    words = mapped();
  }

  unsigned* mapped(unsigned flags = kHostAllocDeviceMap) {
    void* host = nullptr;
    EXPECT_EQ(cu.cuMemHostAlloc(&host, 2 * sizeof(unsigned), flags), kSuccess);
    auto* const allocated = static_cast<unsigned*>(host);
    allocated[0] = allocated[1] = 0;
    return allocated;
  }

  static DevicePointer address(const unsigned* word) {
    return reinterpret_cast<DevicePointer>(word);
  }

  Result raise(Stream stream, unsigned* word, unsigned value) {
    return launch(flag, stream, address(word), value);
  }

  Result answer(Stream stream, unsigned rounds, unsigned long long timeout_ns) {
    return launch(echo, stream, address(&words[0]), address(&words[1]), rounds, timeout_ns);
  }

  static unsigned read(unsigned* word) {
    return std::atomic_ref<unsigned>(*word).load(std::memory_order_acquire);
  }
  static void write(unsigned* word, unsigned value) {
    std::atomic_ref<unsigned>(*word).store(value, std::memory_order_release);
  }

  /// When the host saw `value`, or nothing for a second.
  static double poll(unsigned* word, unsigned value) {
    const double begin = now_ns();
    double now = begin;
    while (read(word) != value && now - begin < 1e9) now = now_ns();
    EXPECT_EQ(read(word), value);
    return now_ns();
  }

  // On an idle machine 1 us is enough. Where others use the processors, many come a time slice
  // late, since two threads must run at once, but some do not.
  static constexpr double kSlack = 50'000;

  /// The least that measure(i) returns, for i from 1: of 100, and of more until it is below `limit`
  /// or 10 s are over.
  template <typename Measure>
  static double best(double limit, Measure measure) {
    const double deadline = now_ns() + 10e9;
    double least = 1e18;
    for (unsigned i = 1; i <= 100 || (least > limit && now_ns() < deadline); ++i) {
      least = std::min(least, measure(i));
    }
    return least;
  }

  Function flag = nullptr, echo = nullptr;
  Stream on = nullptr;
  unsigned* words = nullptr;
};

TEST_F(FakePolling, TheFlagRisesWhenTheKernelBegins) {
  start_polling({{"call_ns", 2000}, {"launch_ns", 60'000}, {"kernel_ns", 1500}});
  const double limit = 60'000 + kSlack;
  const double seen = best(limit, [&](unsigned i) {
    const double begin = now_ns();
    EXPECT_EQ(raise(on, words, i), kSuccess);
    const unsigned early = read(words);
    if (now_ns() - begin < 60'000) {
      EXPECT_EQ(early, i - 1) << "not before its time";
    }
    const double risen = poll(words, i) - begin;
    EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    return risen;
  });
  EXPECT_GE(seen, 60'000);
  EXPECT_LT(seen, limit);
}

TEST_F(FakePolling, TheThreadIsThereForShortLaunchesToo) {
  start_polling({{"call_ns", 1500}, {"launch_ns", 5000}, {"kernel_ns", 1500}});
  double waited = 1e18;
  const double seen = best(5000 + kSlack, [&](unsigned i) {
    const double begin = now_ns();
    EXPECT_EQ(raise(on, words, i), kSuccess);
    const double risen = poll(words, i) - begin;
    EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    waited = std::min(waited, now_ns() - begin);
    return risen;
  });
  EXPECT_GE(seen, 5000);
  EXPECT_LT(seen, 5000 + kSlack);
  EXPECT_GE(waited, 6500);
  EXPECT_LT(waited, 6500 + kSlack);
}

TEST_F(FakePolling, WaitsWaitForTheThreadWhichRunsOnce) {
  start_polling({{"launch_ns", 3e6}, {"kernel_ns", 2e6}});
  const double begin = now_ns();
  ASSERT_EQ(raise(on, words, 5), kSuccess);
  EXPECT_EQ(cu.cuStreamQuery(on), kNotReady);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 5e6) << "launch and kernel";
  EXPECT_EQ(read(words), 5u);
  write(words, 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), kSuccess);
  usleep(5000);
  EXPECT_EQ(cu.cuStreamQuery(on), kSuccess);
  EXPECT_EQ(read(words), 0u);
}

TEST_F(FakePolling, WaitsMaySleepOrYield) {
  for (const unsigned how : {kScheduleYield, kScheduleBlockingSync}) {
    if (words == nullptr) start_polling({{"launch_ns", 1e6}});
    ASSERT_EQ(cu.cuDevicePrimaryCtxSetFlags_v2(0, how), kSuccess);
    ASSERT_EQ(raise(on, words, how), kSuccess);
    ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    EXPECT_EQ(read(words), how);
  }
}

TEST_F(FakePolling, WhatIsBeforeAFlagIsDoneWhenItRises) {
  start_polling({{"kernel_ns", 300'000}});
  const auto count = new_counter();
  const double begin = now_ns();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(launch(increment, on, count), kSuccess);
  ASSERT_EQ(raise(on, words, 1), kSuccess);
  EXPECT_GE(poll(words, 1) - begin, 4 * 300'000);
  EXPECT_EQ(counter(count), 4u) << "a copy that does not wait for this stream";
}

TEST_F(FakePolling, WhatIsBehindAFlagComesAfterIt) {
  start_polling({{"kernel_ns", 300'000}});
  const auto count = new_counter();
  const double wrong_by = best(kSlack, [&](unsigned i) {
    EXPECT_EQ(raise(on, words, i), kSuccess);
    EXPECT_EQ(launch(increment, on, count), kSuccess);
    EXPECT_EQ(raise(on, &words[1], i), kSuccess);
    const double first = poll(words, i);
    const double between = poll(&words[1], i) - first;
    EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    EXPECT_EQ(counter(count), i);
    return std::abs(between - 600'000);
  });
  EXPECT_LT(wrong_by, kSlack) << "the flag and the increment take 600 us";
}

TEST_F(FakePolling, AFlagBehindAGateRisesWhenThatOpens) {
  start_polling();
  auto* const gate_words = mapped();
  ASSERT_EQ(launch(gate, on, address(gate_words), address(gate_words + 1), 1'000'000'000ull),
            kSuccess);
  ASSERT_EQ(raise(on, words, 1), kSuccess);
  usleep(3000);
  EXPECT_EQ(read(words), 0u);
  write(gate_words, 1);
  poll(words, 1);
  EXPECT_EQ(read(gate_words + 1), 0u);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
}

TEST_F(FakePolling, StreamsTakeTurns) {
  start_polling({{"launch_ns", 100'000}});
  const auto other = stream(0);
  ASSERT_EQ(raise(on, words, 1), kSuccess);
  ASSERT_EQ(raise(other, &words[1], 1), kSuccess);
  poll(words, 1);
  poll(&words[1], 1);
  ASSERT_EQ(raise(nullptr, words, 2), kSuccess) << "behind the blocking stream";
  poll(words, 2);
  EXPECT_EQ(cu.cuCtxSynchronize(), kSuccess);
}

TEST_F(FakePolling, AnEchoAnswersEveryRoundAndLastsAsLong) {
  start_polling();
  constexpr unsigned kRounds = 100;
  const auto begin = event(), end = event(), after = event();
  ASSERT_EQ(cu.cuEventRecord(begin, on), kSuccess);
  ASSERT_EQ(answer(on, kRounds, 1'000'000'000), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(end, on), kSuccess);
  ASSERT_EQ(launch(null, on), kSuccess);
  ASSERT_EQ(cu.cuEventRecord(after, on), kSuccess);
  usleep(3000);
  for (unsigned i = 1; i <= kRounds; ++i) {
    write(&words[0], i);
    poll(&words[1], i);
  }
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(elapsed_ns(begin, end), 2.5e6) << "not the kernel_ns of 50 us";
  EXPECT_NEAR(elapsed_ns(end, after), 50'000, 1);
}

TEST_F(FakePolling, AnEchoThatNobodyAsksGivesUp) {
  start_polling();
  const double begin = now_ns();
  ASSERT_EQ(answer(on, 3, 4'000'000), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_GE(now_ns() - begin, 4e6);
  EXPECT_EQ(read(&words[1]), 0u);
}

TEST_F(FakePolling, MemoryThatIsNotMappedIsAnIllegalAddress) {
  start_polling();
  auto* const unmapped = mapped(0);
  ASSERT_EQ(raise(on, unmapped, 1), kSuccess);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kIllegalAddress);
  EXPECT_EQ(cu.cuStreamQuery(on), kIllegalAddress);
  EXPECT_EQ(read(unmapped), 0u);
}

TEST_F(FakePolling, AnEchoWithAWildPointerIsAnIllegalAddress) {
  start_polling();
  ASSERT_EQ(launch(echo, on, address(words), DevicePointer{4096}, 1u, 1'000'000'000ull), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kIllegalAddress);
}

TEST_F(FakePolling, FlagsInDeviceMemoryAreOrdinaryWrites) {
  start_polling();
  const auto word = memory(4096);
  ASSERT_EQ(cu.cuMemsetD8Async(word, 0xFF, 4096, on), kSuccess);
  ASSERT_EQ(launch(flag, on, word, 7u), kSuccess);
  ASSERT_EQ(cu.cuStreamSynchronize(on), kSuccess);
  EXPECT_EQ(counter(word), 7u);
  EXPECT_EQ(counter(word + 4), ~0u);
}

TEST_F(FakePolling, ADeadContextRaisesNothing) {
  start_polling({{"launch_ns", 100e6}},
                Json::array({fault("cuda", "cuCtxSynchronize", 0, kLaunchFailed)}));
  ASSERT_EQ(raise(on, words, 1), kSuccess);
  EXPECT_EQ(cu.cuCtxSynchronize(), kLaunchFailed);
  EXPECT_EQ(cu.cuStreamSynchronize(on), kLaunchFailed);
  usleep(120'000);
  EXPECT_EQ(read(words), 0u);
}

TEST_F(FakePolling, ContextsMayEndBeforeTheirFlags) {
  start_polling({{"launch_ns", 200e6}});
  for (int i = 0; i < 20; ++i) ASSERT_EQ(raise(on, words, 1), kSuccess);
  ASSERT_EQ(cu.cuStreamDestroy_v2(on), kSuccess);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), kSuccess);
  usleep(250'000);
  EXPECT_EQ(read(words), 0u);
}

TEST_F(FakePolling, ABoundHostIsNotInItsOwnWay) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  start_polling({{"launch_ns", 20'000}});
  const double seen = best(20'000 + kSlack, [&](unsigned i) {
    const double begin = now_ns();
    EXPECT_EQ(raise(on, words, i), kSuccess);
    const double risen = poll(words, i) - begin;
    EXPECT_EQ(cu.cuStreamSynchronize(on), kSuccess);
    return risen;
  });
  EXPECT_GE(seen, 20'000);
  EXPECT_LT(seen, 20'000 + kSlack);
}

TEST_F(FakePolling, ThreadsMayLaunchAndWaitAtTheSameTime) {
  start_polling({{"kernel_ns", 1000}, {"launch_ns", 3000}});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    auto* const own = mapped();
    threads.emplace_back([this, own] {
      ASSERT_EQ(cu.cuCtxSetCurrent(context), kSuccess);
      const auto its_stream = stream();
      for (unsigned j = 1; j <= 100; ++j) {
        ASSERT_EQ(raise(its_stream, own, j), kSuccess);
        if (j % 2 == 0) poll(own, j);
        ASSERT_EQ(cu.cuStreamSynchronize(its_stream), kSuccess);
        ASSERT_EQ(read(own), j);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(FakePolling, TheProcessMayEndWhileTheThreadRuns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      (start_polling(), answer(on, 1, 60'000'000'000), usleep(2000), alarm(5), std::exit(3)),
      testing::ExitedWithCode(3),
      "");
}

}  // namespace
}  // namespace launchgap::fake
