#include "harness/device/host/queue.h"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace launchgap::host {
namespace {

TEST(Queue, DoesItsWorkInOrderAndWaitsForAllOfIt) {
  Queue queue(allowed_cpus());
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i)
    queue.run([&order, i] { order.push_back(i); });  // more than its capacity
  queue.wait();
  ASSERT_EQ(order.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Queue, ReadsArgumentsBeforeLaunchReturns) {
  Queue queue(allowed_cpus());
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

TEST(Queue, EnqueueingDoesNotWait) {
  Queue queue(allowed_cpus());
  bool done = false;
  queue.run([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  });
  EXPECT_FALSE(done);
  queue.wait();
  EXPECT_TRUE(done);
}

TEST(Queue, AnExceptionComesOutOfTheWaitOnceAndTheQueueLivesOn) {
  Queue queue(allowed_cpus());
  queue.run([] { throw std::runtime_error("first"); });
  queue.run([] { throw std::runtime_error("second"); });
  try {
    queue.wait();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_NO_THROW(queue.wait());
  int value = 0;
  queue.run([&] { value = 1; });
  queue.wait();
  EXPECT_EQ(value, 1);
}

TEST(Queue, WakesUpAfterItSlept) {
  Queue queue(allowed_cpus());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than it spins
  int value = 0;
  queue.run([&] { value = 1; });
  queue.wait();
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace launchgap::host
