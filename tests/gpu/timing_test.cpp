// Time: kernels last as long as they are told, and events say so.

#include "harness/core/clock.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/warm_up.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

class GpuTiming : public Gpu {
 protected:
  /// Launches an own gate that nobody opens, which lasts as long as its time-out.
  void hold(const Kernel& gate, SharedWords& words, double milliseconds) {
    const auto timeout_ns = static_cast<unsigned long long>(milliseconds * 1e6);
    launch(*stream, gate, {1, 1}, words.on_device(0), words.on_device(1), timeout_ns);
  }
};

/// Also the short ones, of which the timer that the kernel reads has but two steps.
TEST_F(GpuTiming, KernelsLastAsLongAsTheyAreTold) {
  const auto spin = device->load(kernels::spin_kernel);
  DeviceTimer timer(*device, *stream);
  // What is between two kernels is longer on a device that was idle.
  WarmUp(empty_launches(*device, [] {})).warm_up();
  for (const unsigned long long nanoseconds : {2'500ull, 9'000ull, 140'000ull}) {
    void* const nothing = nullptr;
    const auto spin_once = [&](int) { launch(*stream, *spin, {1, 1}, nanoseconds, nothing); };
    timer.time(10, spin_once);
    const auto asked_ns = static_cast<double>(nanoseconds);
    // 4 us are for the launch of the next one.
    const double most = 1.03 * asked_ns + 4'000;
    const double each_ns = shortest(most, [&] {
      const double measured = timer.time(200, spin_once);
      EXPECT_GT(measured, 0.97 * asked_ns);
      return measured;
    });
    EXPECT_LT(each_ns, most);
  }
}

// The truth test of the device's clock: a kernel that runs for a known time takes that time by
// events.
TEST_F(GpuTiming, EventsTellTheTimeOfAKernelThatRunsForAKnownTime) {
  const auto gate = device->load(kernels::gate_kernel);
  SharedWords words(*device, 2);
  const auto begin = device->create_event(), end = device->create_event();
  hold(*gate, words, 1);  // loads the kernel
  stream->wait();
  for (const double milliseconds : {1.0, 5.0, 20.0}) {
    // Never shorter than it is; and as long as that, unless something else had the device
    // meanwhile.
    const double most = milliseconds * 1.05 + 0.1;
    const double fastest = shortest(most, [&] {
      stream->record(*begin);
      hold(*gate, words, milliseconds);
      stream->record(*end);
      stream->wait();
      const double measured = device->elapsed_ns(*begin, *end) * 1e-6;
      EXPECT_GE(measured, milliseconds * 0.98);
      return measured;
    });
    RecordProperty("gate_of_" + std::to_string(milliseconds) + "_ms", std::to_string(fastest));
    EXPECT_LE(fastest, most);
  }
}

TEST_F(GpuTiming, DeviceTimeDoesNotDependOnHowManyOperationsAreTimed) {
  DeviceTimer timer(*device, *stream);
  const auto buffer = device->allocate(256 << 20);
  const auto work = [&](int) { stream->fill_bytes(buffer->address(), 1, buffer->bytes()); };
  work(0);  // its kernel may be loaded lazily, for which the driver waits until the device is idle
  stream->wait();
  timer.time(3, work);
  // Up to a fifth: clocks rise, and others may use the device.
  const double off = shortest(0.2, [&] {
    const double few = timer.time(5, work), many = timer.time(50, work);
    return std::abs(few / many - 1);
  });
  EXPECT_LE(off, 0.2);
}

TEST_F(GpuTiming, TwiceTheWorkTakesTwiceTheTime) {
  DeviceTimer timer(*device, *stream);
  const auto buffer = device->allocate(256 << 20);
  const auto fill_part = [&](std::size_t bytes) {
    return timer.time(10, [&](int) { stream->fill_bytes(buffer->address(), 1, bytes); });
  };
  // What is loaded lazily, and the clock, are there then.
  for (const int part : {1, 2}) {
    stream->fill_bytes(buffer->address(), 1, buffer->bytes() / static_cast<std::size_t>(part));
    stream->wait();
  }
  fill_part(buffer->bytes());
  const double off =
      shortest(0.2, [&] { return std::abs(fill_part(256 << 20) / fill_part(128 << 20) / 2 - 1); });
  EXPECT_LE(off, 0.2);
}

TEST_F(GpuTiming, AGateThatNobodyOpensGivesUpAndSaysSo) {
  const auto gate = device->load(kernels::gate_kernel);
  SharedWords words(*device, 2);
  const std::int64_t begin = now_ns();
  hold(*gate, words, 5);
  stream->wait();
  EXPECT_GE(now_ns() - begin, 0.97 * 5e6);
  EXPECT_EQ(words[1], 1u);
  words[0] = 1;
  words[1] = 0;
  hold(*gate, words, 1e6);
  stream->wait();
  EXPECT_EQ(words[1], 0u) << "it was open";
}

TEST_F(GpuTiming, AnEventIsReachedWhenWhatIsAheadOfItIsDoneAndTellsNoTimeBefore) {
  const auto begin = device->create_event(), end = device->create_event(),
             never = device->create_event(), last = device->create_event();
  constexpr int kInvalidHandle = 400, kNotReady = 600;
  never->wait();  // there is nothing to wait for
  EXPECT_TRUE(fails_with(kInvalidHandle, [&] { device->elapsed_ns(*begin, *never); }));
  Gate gate(*device, *stream);
  stream->record(*begin);
  gate.close();
  stream->record(*end);
  EXPECT_TRUE(fails_with(kNotReady, [&] { device->elapsed_ns(*begin, *end); }));
  busy_for(5);
  gate.open();
  end->wait();
  EXPECT_GE(device->elapsed_ns(*begin, *end), 0.9 * 5e6) << "as long as the gate was closed";
  stream->record(*last);
  last->wait();
  EXPECT_GE(device->elapsed_ns(*end, *last), 0);
}

TEST_F(GpuTiming, OpeningADeviceIsTimed) {
  stream.reset();  // it is of the context that ends
  Gpu::close();
  device = &Gpu::opened();
  EXPECT_GT(device->opening().context_ns.value_or(0), 0);
  EXPECT_GE(device->opening().initialise_ns.value_or(-1), 0);
}

}  // namespace
}  // namespace launchgap
