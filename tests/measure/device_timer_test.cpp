#include "harness/measure/device_timer.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

struct OnTheHost : ::testing::Test {
  std::unique_ptr<Device> device = open_device("host", "host");
  std::unique_ptr<Stream> stream = device->create_stream();
};

using GateTest = OnTheHost;
using DeviceTimerTest = OnTheHost;

TEST_F(GateTest, HoldsTheStreamUntilItIsOpened) {
  Gate gate(*device, *stream);
  const auto buffer = device->allocate(1);
  auto* const byte = static_cast<volatile unsigned char*>(buffer->address());
  *byte = 0;
  gate.close();
  stream->fill_bytes(buffer->address(), 1, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*byte, 0);
  gate.open();
  stream->wait();
  EXPECT_EQ(*byte, 1);
  EXPECT_FALSE(gate.timed_out());
}

TEST_F(GateTest, GivesUpAndSaysSo) {
  Gate gate(*device, *stream);
  gate.close();
  stream->wait();  // nobody opens it
  EXPECT_TRUE(gate.timed_out());
  gate.close();
  gate.open();
  stream->wait();
  EXPECT_FALSE(gate.timed_out());
}

TEST_F(GateTest, AClosedGateThatIsDestroyedLetsTheStreamGo) {
  {
    Gate gate(*device, *stream);
    gate.close();
  }
  stream->wait();
}

TEST_F(DeviceTimerTest, MeasuresTheWorkAndNotTheEnqueueing) {
  DeviceTimer timer(*device, *stream);
  const auto buffer = device->allocate(16 << 20);
  const auto work = [&](int) { stream->fill_bytes(buffer->address(), 1, buffer->bytes()); };
  const double quick = timer.time(4, work);
  const double slow_enqueueing = timer.time(4, [&](int i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    work(i);
  });
  EXPECT_GT(quick, 1e5);
  EXPECT_LT(slow_enqueueing, 15e6);
}

TEST_F(DeviceTimerTest, AnExceptionWhileEnqueueingLeavesNothingHanging) {
  DeviceTimer timer(*device, *stream);
  EXPECT_THROW(timer.time(1, [](int) { throw std::runtime_error("no"); }), std::runtime_error);
  stream->wait();
  EXPECT_GE(timer.time(1, [](int) {}), 0);
}

TEST_F(DeviceTimerTest, WorkThatWaitsBehindTheGateIsInvalid) {
  DeviceTimer timer(*device, *stream);
  EXPECT_THROW(timer.time(1, [&](int) { stream->wait(); }), InvalidMeasurement);
}

TEST_F(DeviceTimerTest, ShortWorkIsRepeatedUpToTheLimit) {
  DeviceTimer timer(*device, *stream);
  const auto kernel = device->load(kernels::null_kernel);
  EXPECT_EQ(timer.operations_for_one_ms(0,
                                        [&](int) {
                                          stream->launch(*kernel, {1, 1}, nullptr);
                                        }),
            DeviceTimer::kMaxOperations);
  const int few = timer.operations_for_one_ms(0.01, [&](int) {
    stream->launch(*kernel, {1, 1}, nullptr);
    static const auto buffer = device->allocate(64 << 20);
    stream->fill_bytes(buffer->address(), 1, buffer->bytes());
  });
  EXPECT_LT(few, 8);
}

}  // namespace
}  // namespace launchgap
