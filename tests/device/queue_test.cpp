#include "harness/device/host/queue.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "kernels/kernels.h"

namespace launchgap::host {
namespace {

/// Whether producer and worker share a CPU, so that both sleep while they wait.
class Queues : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, Queues, testing::Bool(), [](const auto& shares) {
  return shares.param ? "SharedCpu" : "OwnCpu";
});

TEST_P(Queues, DoesItsWorkInOrderAndWaitsForAllOfIt) {
  Queue queue(allowed_cpus(), GetParam());
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i)
    queue.run([&order, i] { order.push_back(i); });  // more than its capacity
  queue.wait();
  ASSERT_EQ(order.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(Queues, ReadsArgumentsBeforeLaunchReturns) {
  Queue queue(allowed_cpus(), GetParam());
  unsigned first = 0, second = 0;
  unsigned* counter = &first;
  void* arguments[] = {&counter};
  queue.launch(kernels::increment_kernel, {1, 1}, arguments);
  counter = &second;
  queue.launch(kernels::increment_kernel, {1, 1}, arguments);
  queue.wait();
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 1u);
}

TEST_P(Queues, EnqueueingDoesNotWait) {
  Queue queue(allowed_cpus(), GetParam());
  bool done = false;
  queue.run([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  });
  EXPECT_FALSE(done);
  queue.wait();
  EXPECT_TRUE(done);
}

TEST_P(Queues, AnExceptionComesOutOfTheWaitOnceAndTheQueueLivesOn) {
  Queue queue(allowed_cpus(), GetParam());
  queue.run([] { throw std::runtime_error("first"); });
  queue.run([] { throw std::runtime_error("second"); });
  EXPECT_THAT([&] { queue.wait(); }, testing::ThrowsMessage<std::runtime_error>("first"));
  EXPECT_NO_THROW(queue.wait());
  int value = 0;
  queue.run([&] { value = 1; });
  queue.wait();
  EXPECT_EQ(value, 1);
}

TEST_P(Queues, WakesUpAfterItSlept) {
  Queue queue(allowed_cpus(), GetParam());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than it spins
  int value = 0;
  queue.run([&] { value = 1; });
  queue.wait();
  EXPECT_EQ(value, 1);
}

TEST(Queue, OnOneCpuManyTasksTakeLessThanOneTurnOfTheScheduler) {
  std::thread([] {
    const CpuList one = {allowed_cpus().front()};
    bind_thread(one);
    Queue queue(one, true);
    unsigned count = 0;
    unsigned* counter = &count;
    void* arguments[] = {&counter};
    // The best of many: others use the CPU too.
    std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < 50; ++round) {
      const std::int64_t begin = now_ns();
      for (int i = 0; i < 1000; ++i) queue.launch(kernels::increment_kernel, {1, 1}, arguments);
      queue.wait();
      best_ns = std::min(best_ns, now_ns() - begin);
    }
    EXPECT_EQ(count, 50'000u);
    EXPECT_LT(best_ns, 2'000'000);  // who spins keeps the other waiting for 4 ms or more
  }).join();
}

}  // namespace
}  // namespace launchgap::host
