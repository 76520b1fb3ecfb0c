#include <cstdlib>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>

#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/device/shared_library.h"
#include "tests/error_of.h"

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

TEST(HostDevice, CopiesInTheOrderOfTheStream) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  constexpr std::size_t kBytes = 1'000'003;
  const auto from = device->allocate(kBytes), to = device->allocate_shared(kBytes);
  for (const CopyDirection direction : {CopyDirection::device_to_device,
                                        CopyDirection::host_to_device,
                                        CopyDirection::device_to_host}) {
    const auto value = static_cast<unsigned char>(1 + static_cast<int>(direction));
    stream->fill_bytes(from->address(), value, kBytes);
    stream->fill_bytes(to->address(), 0xEE, kBytes);
    stream->copy(to->address(), from->address(), kBytes - 1, direction);
    stream->fill_bytes(from->address(), 0x11, kBytes);
    stream->wait();
    const auto* const bytes = static_cast<const unsigned char*>(to->address());
    EXPECT_EQ(std::vector(bytes, bytes + kBytes - 1),
              std::vector<unsigned char>(kBytes - 1, value));
    EXPECT_EQ(bytes[kBytes - 1], 0xEE);
  }
}

TEST(HostDevice, MapsAndUnmapsPages) {
  const auto device = open_device("host", "host");
  const auto memory = device->virtual_memory();
  const std::size_t page = memory->granularity();
  auto* const range = static_cast<char*>(memory->reserve(4 * page));
  memory->map(range + page, 2 * page);
  std::memset(range + page, 1, 2 * page);
  memory->unmap(range + page, page);
  EXPECT_EQ(range[2 * page], 1);
  memory->map(range + page, page);
  EXPECT_EQ(range[page], 0) << "pages that were given back are new ones";
  EXPECT_THROW(memory->map(range + 1, page), Error);
  EXPECT_THROW(memory->map(range, page - 1), Error);
  memory->unmap(range + page, 2 * page);
  memory->unreserve(range, 4 * page);
}

TEST(HostDevice, WhatItDoesNotHaveIsUnsupported) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  for (const AllocatorKindInfo& info : allocator_kinds()) {
    if (info.on_host.empty()) {
      EXPECT_THROW(device->allocator(*stream, info.kind), Unsupported) << info.name;
    }
  }
}

/// What is given back is used again only once all behind it is given back too.
TEST(HostDevice, AnExpandingAllocatorReusesItsEnd) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  const auto allocator = device->allocator(*stream, AllocatorKind::vmm_expand);
  constexpr std::size_t kBytes = 1 << 20;
  void* const first = allocator->allocate(kBytes);
  void* const second = allocator->allocate(kBytes);
  allocator->release(first, kBytes);
  void* const third = allocator->allocate(kBytes);
  EXPECT_GT(third, second);
  EXPECT_THROW(allocator->release(first, kBytes), Error) << "twice";
  allocator->release(third, kBytes);
  EXPECT_EQ(allocator->allocate(kBytes), third);
  allocator->release(third, kBytes);
  allocator->release(second, kBytes);
  EXPECT_EQ(allocator->allocate(kBytes), first);
}

TEST(HostDevice, EveryAllocatorGivesUsableMemory) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  for (const AllocatorKind kind : {AllocatorKind::direct,
                                   AllocatorKind::mapped,
                                   AllocatorKind::pool,
                                   AllocatorKind::vmm,
                                   AllocatorKind::vmm_expand}) {
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
  EXPECT_THROW(device->matmul(*stream, MatmulShape::square(64, product_type("fp16"))), Unsupported);
  EXPECT_THROW(device->matmul(*stream, MatmulShape::square(64, product_type("tf32"))), Unsupported);
  ConvolutionShape shape;
  shape.type = product_type("fp16");
  EXPECT_THROW(device->convolution(*stream, shape), Unsupported);
}

TEST(OpenDevice, RefusesUnknownBackends) {
  EXPECT_THROW(open_device("opencl", "x"), UsageError);
}

TEST(SharedLibrary, AMissingOneNamesWhatWasTried) {
  EXPECT_THAT(error_of([] {
                SharedLibrary::open(
                    {"Nonsense", "LAUNCHGAP_NONSENSE", {"libnonsense.so.1", "libnonsense.so"}, {}});
              }),
              ::testing::AllOf(::testing::HasSubstr("Nonsense could not be loaded"),
                               ::testing::HasSubstr("libnonsense.so.1")));
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
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
}

}  // namespace
}  // namespace launchgap
