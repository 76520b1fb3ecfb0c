#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/graph.h"
#include "harness/device/matmul.h"
#include "harness/device/null_launcher.h"
#include "harness/device/shared_library.h"

namespace launchgap {
namespace {

TEST(HostDevice, IsAlwaysThereAndSaysWhatItIs) {
  const auto devices = probe_devices("host");
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].usable);
  EXPECT_TRUE(devices[0].uuid.starts_with("host-"));
  EXPECT_FALSE(devices[0].name.empty());
  EXPECT_EQ(devices[0].multiprocessors, static_cast<int>(allowed_cpus().size()));
  EXPECT_FALSE(devices[0].compute_capability.has_value());
}

TEST(HostDevice, EventsTellTheTimeOfTheWorkBetweenThem) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  const auto begin = device->create_event(), end = device->create_event();
  const auto buffer = device->allocate(64 << 20);
  stream->record(*begin);
  stream->fill_bytes(buffer->address(), 1, buffer->bytes());
  stream->record(*end);
  stream->wait();
  EXPECT_GT(device->elapsed_ns(*begin, *end), 1e5);
}

TEST(HostDevice, EveryAllocatorGivesUsableMemory) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  for (const AllocatorKind kind :
       {AllocatorKind::direct, AllocatorKind::mapped, AllocatorKind::pool}) {
    const auto allocator = device->allocator(*stream, kind);
    for (const std::size_t bytes : {std::size_t{256}, std::size_t{1} << 24}) {
      void* const address = allocator->allocate(bytes);
      allocator->touch(address, bytes);
      EXPECT_EQ(static_cast<unsigned char*>(address)[bytes - 1], 0x5A);
      allocator->release(address, bytes);
    }
    EXPECT_FALSE(allocator->method().empty());
  }
}

TEST(HostDevice, SaysWhatItCannotDo) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  EXPECT_THROW(device->matmul(*stream, {64, ElementType::fp16, false}), Unsupported);
  EXPECT_THROW(device->matmul(*stream, {64, ElementType::fp32, true}), Unsupported);
  ConvolutionShape shape;
  shape.type = ElementType::bf16;
  EXPECT_THROW(device->convolution(*stream, shape), Unsupported);
}

TEST(OpenDevice, RefusesUnknownBackends) {
  EXPECT_THROW(open_device("opencl", "x"), UsageError);
}

TEST(SharedLibrary, AMissingOneNamesWhatWasTried) {
  try {
    SharedLibrary::open(
        {"Nonsense", "LAUNCHGAP_NONSENSE", {"libnonsense.so.1", "libnonsense.so"}, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::strstr(error.what(), "Nonsense could not be loaded"), nullptr) << error.what();
    EXPECT_NE(std::strstr(error.what(), "libnonsense.so.1"), nullptr);
  }
}

TEST(SharedLibrary, TheOverrideIsTheOnlyPlaceThatIsTried) {
  setenv("LAUNCHGAP_LIBM", "/nowhere/libm.so.6", 1);
  EXPECT_THROW(SharedLibrary::open({"libm", "LAUNCHGAP_LIBM", {"libm.so.6"}, {}}), Error);
  unsetenv("LAUNCHGAP_LIBM");
  const SharedLibrary library = SharedLibrary::open({"libm", "LAUNCHGAP_LIBM", {"libm.so.6"}, {}});
  EXPECT_TRUE(library.path().starts_with("/")) << library.path();
  EXPECT_FALSE(library.facts().simulated);
  EXPECT_NE(library.find("cos"), nullptr);
  EXPECT_THROW(library.require("launchgap_no_such_function"), Error);
}

TEST(CudaVersionText, IsMajorAndMinor) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
  EXPECT_EQ(cuda_version_text(10020), "10.2");
}

}  // namespace
}  // namespace launchgap
