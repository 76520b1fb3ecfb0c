// What only a GPU can prove: the kernels, the libraries and the clocks, through the same face that
// benchmarks use. Runs on the first visible GPU: scripts/validate-gpu runs it on each real one,
// ctest on a fake one.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/verify.h"
#include "harness/measure/warm_up.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

using kernels::Distribution;

std::string& gpu_uuid() {
  static std::string uuid;
  return uuid;
}

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    device = open_device("cuda", gpu_uuid());
    stream = device->create_stream();
    try {
      device->load(kernels::null_kernel);
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();  // this build has not that form of the kernels for this GPU
    }
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

TEST_F(Gpu, SaysWhatItIs) {
  const DeviceFacts& facts = device->facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_TRUE(facts.compute_capability.has_value());
  EXPECT_TRUE(facts.pci_bus_id.has_value());
  EXPECT_GT(facts.memory_bytes.value_or(0), 1u << 30);
  EXPECT_GT(facts.multiprocessors.value_or(0), 0);
  EXPECT_GT(facts.last_level_cache_bytes.value_or(0), 0u);
  EXPECT_TRUE(facts.uuid.starts_with("GPU-") || facts.uuid.starts_with("MIG-")) << facts.uuid;
  EXPECT_EQ(facts.uuid.size(), 40u);
}

/// Also the short ones, of which the timer that the kernel reads has but two steps.
TEST_F(Gpu, KernelsLastAsLongAsTheyAreTold) {
  const auto spin = device->load(kernels::spin_kernel);
  DeviceTimer timer(*device, *stream);
  // What is between two kernels is longer on a device that was idle.
  Warmth(
      *device, [] { return std::optional<double>(); }, [] {})
      .warm_up();
  for (unsigned long long nanoseconds : {2'500ull, 9'000ull, 140'000ull}) {
    void* counter = nullptr;
    void* arguments[] = {&nanoseconds, &counter};
    const auto launch = [&](int) { stream->launch(*spin, {1, 1}, arguments); };
    timer.time(10, launch);
    const double each_ns = timer.time(200, launch);
    const auto asked_ns = static_cast<double>(nanoseconds);
    EXPECT_GT(each_ns, 0.97 * asked_ns);
    EXPECT_LT(each_ns, 1.03 * asked_ns + 4'000) << "with the launch of the next one";
  }
}

TEST_F(Gpu, LaunchesRunOnceAndInOrder) {
  const auto increment = device->load(kernels::increment_kernel);
  const auto counter = device->allocate(sizeof(unsigned));
  void* address = counter->address();
  void* arguments[] = {&address};
  stream->fill_bytes(address, 0, sizeof(unsigned));
  for (int i = 0; i < 10'000; ++i) stream->launch(*increment, {1, 1}, arguments);
  stream->wait();
  unsigned count = 0;
  device->read(*counter, 0, &count, sizeof count);
  EXPECT_EQ(count, 10'000u);
}

TEST_F(Gpu, FillsExactlyWhatTheHostComputes) {
  for (const ElementType type : {ElementType::fp32, ElementType::fp16, ElementType::bf16}) {
    for (const Distribution distribution : {Distribution::small_integer, Distribution::uniform}) {
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 20) + 3}) {
        const auto buffer = device->allocate(count * kernels::element_bytes(type));
        fill(*device, *stream, *buffer, 99, type, distribution);
        std::vector<unsigned char> bytes(buffer->bytes());
        device->read(*buffer, 0, bytes.data(), bytes.size());
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(kernels::load_element(bytes.data(), i, type),
                    kernels::rounded_to(type, kernels::element(99, i, distribution)))
              << "element " << i;
        }
      }
    }
  }
}

TEST_F(Gpu, TheGateHoldsTheStreamUntilItIsOpened) {
  Gate gate(*device, *stream);
  const auto increment = device->load(kernels::increment_kernel);
  const auto counter = device->allocate_shared(sizeof(unsigned));
  auto* const value = static_cast<volatile unsigned*>(counter->address());
  *value = 0;
  void* address = device->device_address(*counter);
  void* arguments[] = {&address};
  stream->launch(*increment, {1, 1}, arguments);
  stream->wait();
  ASSERT_EQ(*value, 1u);
  gate.close();
  stream->launch(*increment, {1, 1}, arguments);
  for (const std::int64_t until = now_ns() + 20'000'000; now_ns() < until;) {
  }
  EXPECT_EQ(*value, 1u);
  gate.open();
  stream->wait();
  EXPECT_EQ(*value, 2u);
  EXPECT_FALSE(gate.timed_out());
}

// The truth test of the device's clock: a kernel that runs for a known time takes that time by
// events.
TEST_F(Gpu, EventsTellTheTimeOfAKernelThatRunsForAKnownTime) {
  const auto gate = device->load(kernels::gate_kernel);
  const auto flags = device->allocate_shared(2 * sizeof(unsigned));
  std::memset(flags->address(), 0, flags->bytes());
  const auto begin = device->create_event(), end = device->create_event();
  const auto time_gate = [&](double milliseconds) {
    void* open = device->device_address(*flags);
    void* timed_out = static_cast<char*>(open) + sizeof(unsigned);
    auto timeout_ns = static_cast<unsigned long long>(milliseconds * 1e6);
    void* arguments[] = {&open, &timed_out, &timeout_ns};
    stream->record(*begin);
    stream->launch(*gate, {1, 1}, arguments);
    stream->record(*end);
    stream->wait();
    return device->elapsed_ns(*begin, *end) * 1e-6;
  };
  time_gate(1);  // loads the kernel
  for (const double milliseconds : {1.0, 5.0, 20.0}) {
    // Never shorter than it is; and as long as that, unless something else had the device
    // meanwhile.
    double fastest = 1e9;
    const double most = milliseconds * 1.05 + 0.1;
    for (int i = 0; i < 5 || (fastest > most && i < 100); ++i) {
      const double measured = time_gate(milliseconds);
      EXPECT_GE(measured, milliseconds * 0.98);
      fastest = std::min(fastest, measured);
    }
    RecordProperty("gate_of_" + std::to_string(milliseconds) + "_ms", std::to_string(fastest));
    EXPECT_LE(fastest, most);
  }
}

TEST_F(Gpu, DeviceTimeDoesNotDependOnHowManyOperationsAreTimed) {
  DeviceTimer timer(*device, *stream);
  const auto buffer = device->allocate(256 << 20);
  const auto work = [&](int) { stream->fill_bytes(buffer->address(), 1, buffer->bytes()); };
  work(0);  // its kernel may be loaded lazily, for which the driver waits until the device is idle
  stream->wait();
  timer.time(3, work);
  const double few = timer.time(5, work), many = timer.time(50, work);
  EXPECT_NEAR(few / many, 1, 0.2);
}

class GpuMatmul : public Gpu {
 protected:
  void verify(int size, ElementType type, bool tf32) {
    const MatmulShape shape{size, type, tf32};
    std::unique_ptr<Matmul> matmul;
    try {
      matmul = device->matmul(*stream, shape);
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();
    }
    const std::size_t bytes = static_cast<std::size_t>(size) * static_cast<std::size_t>(size) *
                              kernels::element_bytes(type);
    const auto a = device->allocate(bytes), b = device->allocate(bytes),
               c = device->allocate(bytes);
    InputSeeds seeds{1, 2, Distribution::small_integer};
    for (const Distribution distribution : {Distribution::small_integer, Distribution::uniform}) {
      seeds.distribution = distribution;
      fill(*device, *stream, *a, seeds.first, type, distribution);
      fill(*device, *stream, *b, seeds.second, type, distribution);
      stream->fill_bytes(c->address(), 0xFF, bytes);
      try {
        matmul->enqueue(*a, *b, *c);
      } catch (const Unsupported& reason) {
        GTEST_SKIP() << reason.what();
      }
      stream->wait();
      if (distribution == Distribution::small_integer) {
        EXPECT_NO_THROW(verify_matmul(*device, *c, shape, seeds));
      }
      EXPECT_NO_THROW(verify_timed_matmul(*device, *c, shape, seeds));
    }
  }
};

TEST_F(GpuMatmul, Fp32IsExactOnIntegers) {
  for (const int size : {64, 256, 320}) verify(size, ElementType::fp32, false);
}
TEST_F(GpuMatmul, Tf32IsExactOnIntegers) {
  for (const int size : {64, 256, 320}) verify(size, ElementType::fp32, true);
}
TEST_F(GpuMatmul, Fp16IsExactOnIntegers) {
  for (const int size : {64, 256, 320}) verify(size, ElementType::fp16, false);
}
TEST_F(GpuMatmul, Bf16IsExactOnIntegers) {
  for (const int size : {64, 256, 320}) verify(size, ElementType::bf16, false);
}

TEST_F(Gpu, ConvolutionsAreThoseOfTheDefinition) {
  int ran = 0;
  std::string why;
  for (const ElementType type : {ElementType::fp32, ElementType::fp16}) {
    for (const int stride : {1, 2}) {
      ConvolutionShape shape;
      shape.n = 2, shape.c = 16, shape.h = 14, shape.w = 14, shape.k = 24, shape.r = 3, shape.s = 3;
      shape.stride = stride, shape.pad = 1, shape.type = type;
      const std::size_t bytes = kernels::element_bytes(type);
      try {
        const auto convolution = device->convolution(*stream, shape);
        const auto input = device->allocate(shape.input_count() * bytes);
        const auto filter = device->allocate(shape.filter_count() * bytes);
        std::vector<unsigned char> output(shape.output_count() * bytes);
        const InputSeeds seeds{3, 4, Distribution::small_integer};
        fill(*device, *stream, *input, seeds.first, type, seeds.distribution);
        fill(*device, *stream, *filter, seeds.second, type, seeds.distribution);
        convolution->add_tensors(*input, *filter);
        convolution->enqueue(0);
        convolution->read_output(0, output.data());
        EXPECT_NO_THROW(
            verify_convolution(output.data(), shape, seeds, convolution->rounds_integers()))
            << convolution->method();
        ++ran;
      } catch (const Unsupported& reason) {
        why = reason.what();
      }
    }
  }
  if (ran == 0) GTEST_SKIP() << why;
}

TEST_F(Gpu, AllocatorsGiveMemoryThatHoldsWhatIsWritten) {
  for (const AllocatorKind kind : {AllocatorKind::direct, AllocatorKind::pool}) {
    std::unique_ptr<Allocator> allocator;
    try {
      allocator = device->allocator(*stream, kind);
    } catch (const Unsupported&) {
      continue;
    }
    for (const std::size_t bytes :
         {std::size_t{256}, std::size_t{1} << 20, std::size_t{64} << 20}) {
      void* const first = allocator->allocate(bytes);
      void* const second = allocator->allocate(bytes);
      EXPECT_NE(first, second);
      allocator->touch(first, bytes);
      allocator->touch(second, bytes);
      allocator->release(first, bytes);
      allocator->release(second, bytes);
      stream->wait();
    }
  }
}

TEST_F(Gpu, MemoryComesBackWhenItIsReleased) {
  stream->wait();
  const std::uint64_t before = device->free_memory_bytes();
  { const auto buffer = device->allocate(std::size_t{512} << 20); }
  EXPECT_GE(device->free_memory_bytes() + (4 << 20), before);
}

TEST_F(Gpu, TooLargeAnAllocationIsAClearErrorAndNothingElseBreaks) {
  try {
    device->allocate(std::size_t{1} << 50);
    FAIL();
  } catch (const LibraryError& error) {
    EXPECT_EQ(error.call(), "cuMemAlloc_v2");
    EXPECT_EQ(error.code(), 2);
    EXPECT_FALSE(error.sticky());
  }
  EXPECT_NO_THROW(device->allocate(1 << 20));
}

}  // namespace
}  // namespace launchgap

int main(int argc, char** argv) {
  constexpr int kNoGpu = 77;
  testing::InitGoogleTest(&argc, argv);
  try {
    const std::vector<launchgap::DeviceFacts> gpus = launchgap::probe_devices("cuda");
    if (gpus.empty()) {
      std::fprintf(stderr, "no GPU: the driver shows none\n");
      return kNoGpu;
    }
    launchgap::gpu_uuid() = gpus.front().uuid;
  } catch (const launchgap::Error& error) {
    std::fprintf(stderr, "no GPU: %s\n", error.what());
    return kNoGpu;
  }
  return RUN_ALL_TESTS();
}
