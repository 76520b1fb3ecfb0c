// Errors: each has its code, and is sticky only where the process can go on no more.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using GpuError = Gpu;

TEST_F(GpuError, TooLargeAnAllocationIsAClearErrorAndNothingElseBreaks) {
  try {
    device->allocate(std::size_t{1} << 50);
    FAIL();
  } catch (const LibraryError& error) {
    EXPECT_EQ(error.call(), "cuMemAlloc_v2");
    EXPECT_EQ(error.code(), 2);
    EXPECT_FALSE(error.sticky());
    EXPECT_NE(error.text().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << error.text();
  }
  EXPECT_NO_THROW(device->allocate(1 << 20));
}

TEST_F(GpuError, ABlockOfMoreThreadsThanThereAreIsRefusedAtTheLaunch) {
  const auto increment = device->load(kernels::increment_kernel);
  const DeviceCounter counter(*device);
  constexpr int kInvalidValue = 1;
  for (const LaunchShape shape : {LaunchShape{1, 1025}, LaunchShape{0, 1}, LaunchShape{1, 0}}) {
    EXPECT_TRUE(
        fails_with(kInvalidValue, [&] { launch(*stream, *increment, shape, counter.address()); }))
        << shape.blocks << " x " << shape.threads;
  }
  launch(*stream, *increment, {1, 1}, counter.address());
  stream->wait();
  EXPECT_EQ(counter.value(), 1u);
}

/// What costs a process its context, in processes of its own. GoogleTest runs these first: later
/// the libraries hold a context here, and a GPU may be one that a single process has.
class GpuDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    Gpu::close();
  }

  /// Ends the process, well if there is nothing to say.
  template <class Body>
  [[noreturn]] static void end_with(Body body) {
    std::string wrong;
    try {
      wrong = body();
    } catch (const Error& error) {
      wrong = error.what();
    }
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::_Exit(wrong.empty() ? 0 : 1);
  }

  static std::string access_nothing() {
    constexpr int kIllegalAddress = 700;
    Device& device = Gpu::opened();
    const auto stream = device.create_stream();
    const auto increment = device.load(kernels::increment_kernel);
    launch(*stream, *increment, {1, 1}, static_cast<void*>(nullptr));
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"the next wait", [&] { stream->wait(); }},
        {"an allocation", [&] { device.allocate(16); }},
        {"a launch",
         [&] {
           launch(*stream, *increment, {1, 1}, static_cast<void*>(nullptr));
         }},
        {"a wait for all", [&] { device.check(); }}};
    for (const auto& [name, call] : calls) {
      try {
        call();
      } catch (const LibraryError& error) {
        if (error.code() == kIllegalAddress && error.sticky()) continue;
        return error.what();
      }
      return name + std::string(" succeeds");
    }
    return "";
  }

  static std::string close_with_memory() {
    constexpr std::size_t kBytes = 128 << 20;
    const std::uint64_t before = Gpu::opened().free_memory_bytes();
    const auto buffer = Gpu::opened().allocate(kBytes);
    Gpu::close();
    const std::uint64_t after = Gpu::opened().free_memory_bytes();
    return after + kTolerance >= before ? "" : "the memory did not come back";
  }
};

TEST_F(GpuDeathTest, AnIllegalAccessIsAnErrorOfTheNextWaitAndOfEveryCallAfterIt) {
  EXPECT_EXIT(end_with(access_nothing), testing::ExitedWithCode(0), "");
}

TEST_F(GpuDeathTest, MemoryComesBackWhenTheDeviceIsClosed) {
  EXPECT_EXIT(end_with(close_with_memory), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace launchgap
