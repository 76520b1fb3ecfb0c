// Memory: what is written is there, blocks are apart, and what is given back comes back.
#include <algorithm>
#include <vector>

#include "harness/device/allocator.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/fill.h"
#include "tests/gpu/gpu.h"

namespace launchgap {
namespace {

using kernels::Distribution;
using kernels::ElementType;

class GpuMemory : public Gpu {
 protected:
  std::vector<unsigned char> content(const Buffer& buffer) {
    std::vector<unsigned char> bytes(buffer.bytes());
    device->read(buffer, 0, bytes.data(), bytes.size());
    return bytes;
  }
};

TEST_F(GpuMemory, IsFilledExactlyAsTheHostComputes) {
  for (const ElementType type : {ElementType::fp32,
                                 ElementType::fp16,
                                 ElementType::bf16,
                                 ElementType::fp64,
                                 ElementType::int8,
                                 ElementType::int32,
                                 ElementType::fp8_e4m3,
                                 ElementType::fp8_e5m2}) {
    for (const Distribution distribution : {Distribution::small_integer, Distribution::uniform}) {
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 18) + 3}) {
        const auto buffer = device->allocate(count * kernels::element_bytes(type));
        fill(*device, *stream, *buffer, 99, type, distribution);
        const auto bytes = content(*buffer);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(kernels::load_element(bytes.data(), i, type),
                    kernels::element(99, i, distribution, type))
              << "element " << i;
        }
      }
    }
  }
}

TEST_F(GpuMemory, BytesAreWrittenWhereTheyAreMeantAndReadFromWhereTheyAre) {
  constexpr std::size_t kBytes = 100'000;
  const auto buffer = device->allocate(kBytes);
  auto* const address = static_cast<char*>(buffer->address());
  stream->fill_bytes(address, 1, kBytes);
  stream->fill_bytes(address + 1001, 2, 777);
  stream->wait();
  const auto bytes = content(*buffer);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(bytes[i], i >= 1001 && i < 1778 ? 2 : 1) << i;
  unsigned char three[3] = {};
  device->read(*buffer, 1776, three, sizeof three);
  EXPECT_EQ(std::vector(three, three + 3), (std::vector<unsigned char>{2, 2, 1}));
}

/// Where the host's part of a copy is.
enum class HostMemory { pinned, pageable };

class GpuCopy : public GpuMemory, public testing::WithParamInterface<HostMemory> {
 protected:
  static constexpr std::size_t kBytes = 3'000'001;

  void SetUp() override {
    GpuMemory::SetUp();
    if (GetParam() == HostMemory::pinned) {
      pinned = device->allocate_shared(kBytes);
      host = static_cast<unsigned char*>(pinned->address());
    } else {
      pageable.resize(kBytes);
      host = pageable.data();
    }
    on_device = device->allocate(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) host[i] = pattern(i);
  }
  void TearDown() override {
    on_device.reset();
    pinned.reset();
    GpuMemory::TearDown();
  }
  static unsigned char pattern(std::size_t i) { return static_cast<unsigned char>(i * 31 / 7); }

  std::unique_ptr<Buffer> pinned, on_device;
  std::vector<unsigned char> pageable;
  unsigned char* host = nullptr;
};

TEST_P(GpuCopy, BringsEveryByteThereAndBackInTheOrderOfTheStream) {
  const auto second = device->allocate(kBytes);
  auto* const first = static_cast<char*>(on_device->address());
  stream->fill_bytes(first, 0xEE, kBytes);
  stream->copy(first, host, kBytes, CopyDirection::host_to_device);
  stream->copy(second->address(), first, kBytes, CopyDirection::device_to_device);
  // What is changed behind a copy is not in it.
  stream->fill_bytes(first, 0x11, kBytes);
  stream->wait();
  std::fill(host, host + kBytes, 0xDD);
  stream->copy(host, second->address(), kBytes, CopyDirection::device_to_host);
  stream->wait();
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(host[i], pattern(i)) << i;
  EXPECT_EQ(content(*on_device), std::vector<unsigned char>(kBytes, 0x11));
}

TEST_P(GpuCopy, ChangesNothingBesideWhatItCopies) {
  auto* const first = static_cast<char*>(on_device->address());
  stream->fill_bytes(first, 0xEE, kBytes);
  stream->copy(first + 1001, host + 5, 777, CopyDirection::host_to_device);
  stream->copy(first + 3000, first + 1002, 10, CopyDirection::device_to_device);
  stream->wait();
  const auto bytes = content(*on_device);
  for (std::size_t i = 0; i < kBytes; ++i) {
    const unsigned char right = i >= 1001 && i < 1778   ? pattern(i - 1001 + 5)
                                : i >= 3000 && i < 3010 ? pattern(i - 3000 + 1 + 5)
                                                        : 0xEE;
    ASSERT_EQ(bytes[i], right) << i;
  }
}

TEST_P(GpuCopy, OfMemoryThatIsNoneIsAnErrorAndTheProcessGoesOn) {
  EXPECT_TRUE(fails_with(1, [&] {
    stream->copy(nullptr, host, kBytes, CopyDirection::host_to_device);
    stream->wait();
  }));
  stream->copy(on_device->address(), host, kBytes, CopyDirection::host_to_device);
  stream->wait();
  EXPECT_EQ(content(*on_device).back(), pattern(kBytes - 1));
}

INSTANTIATE_TEST_SUITE_P(Memory,
                         GpuCopy,
                         testing::Values(HostMemory::pinned, HostMemory::pageable),
                         [](const auto& memory) {
                           return memory.param == HostMemory::pinned ? "pinned" : "pageable";
                         });

TEST_F(GpuMemory, PinnedCopiesReturnBeforeTheyAreDone) {
  if (!device->kernels_may_wait()) GTEST_SKIP() << "no kernel may wait for the host here";
  constexpr std::size_t kBytes = 1 << 20;
  const auto pinned = device->allocate_shared(kBytes);
  const auto on_device = device->allocate(kBytes);
  std::fill_n(static_cast<char*>(pinned->address()), kBytes, 1);
  stream->fill_bytes(on_device->address(), 2, kBytes);
  stream->copy(on_device->address(), pinned->address(), kBytes, CopyDirection::host_to_device);
  stream->wait();
  Gate gate(*device, *stream);
  gate.close();
  stream->fill_bytes(on_device->address(), 3, kBytes);
  // Both would never return if they waited for the gate, which opens only after them.
  stream->copy(on_device->address(), pinned->address(), kBytes, CopyDirection::host_to_device);
  stream->copy(pinned->address(), on_device->address(), kBytes, CopyDirection::device_to_host);
  gate.open();
  stream->wait();
  EXPECT_FALSE(gate.timed_out());
  EXPECT_EQ(content(*on_device), std::vector<unsigned char>(kBytes, 1));
}

TEST_F(GpuMemory, HostAndDeviceShareWords) {
  const auto increment = device->load(kernels::increment_kernel);
  SharedWords words(*device, 2);
  words[0] = 41;
  launch(*stream, *increment, {1, 1}, words.on_device(0));
  stream->wait();
  EXPECT_EQ(words[0], 42u);
  EXPECT_EQ(words[1], 0u);
}

TEST_F(GpuMemory, ComesBackWhenItIsReleased) {
  constexpr std::uint64_t kBytes = 256 << 20;
  const std::uint64_t before = device->free_memory_bytes();
  EXPECT_LE(before, device->facts().memory_bytes.value_or(before));
  {
    const auto buffer = device->allocate(kBytes);
    EXPECT_LE(device->free_memory_bytes(), before - kBytes + kTolerance);
  }
  EXPECT_GE(device->free_memory_bytes() + kTolerance, before);
}

class GpuAllocator : public GpuMemory, public testing::WithParamInterface<AllocatorKind> {
 protected:
  void SetUp() override {
    GpuMemory::SetUp();
    SKIP_UNLESS_SUPPORTED(allocator = device->allocator(*stream, GetParam()));
  }
  void TearDown() override {
    allocator.reset();
    GpuMemory::TearDown();
  }
  std::unique_ptr<Allocator> allocator;
};

TEST_P(GpuAllocator, GivesBlocksThatAreApartAndHoldWhatIsWritten) {
  // The second time from what was given back.
  for (const std::size_t megabytes : std::initializer_list<std::size_t>{0, 0, 1, 1, 64, 64}) {
    const std::size_t bytes = std::max(std::size_t{256}, megabytes << 20);
    void* const first = allocator->allocate(bytes);
    void* const second = allocator->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
    allocator->touch(first, bytes);
    stream->fill_bytes(second, 1, bytes);
    stream->wait();
    EXPECT_EQ(content(MemoryView(first, bytes)), std::vector<unsigned char>(bytes, 0x5A));
    EXPECT_EQ(content(MemoryView(second, bytes)), std::vector<unsigned char>(bytes, 1));
    allocator->release(first, bytes);
    allocator->release(second, bytes);
    stream->wait();
  }
}

/// Whether the device has less while a block is live, and whether it has it back once the block is
/// released and the stream was waited for. Managed memory is there only once it is used.
bool takes_from_device(AllocatorKind kind) {
  return kind != AllocatorKind::host_pinned && kind != AllocatorKind::host_register &&
         kind != AllocatorKind::managed;
}
bool keeps_what_is_released(AllocatorKind kind) {
  return kind == AllocatorKind::pool || kind == AllocatorKind::pool_own ||
         kind == AllocatorKind::vmm_expand;
}

TEST_P(GpuAllocator, GivesEverythingBackInTheEnd) {
  constexpr std::size_t kBytes = 64 << 20;
  const std::uint64_t before = device->free_memory_bytes();
  for (int round = 0; round < 3; ++round) {
    void* const block = allocator->allocate(kBytes);
    if (takes_from_device(GetParam())) {
      EXPECT_LE(device->free_memory_bytes(), before - kBytes + kTolerance);
    }
    allocator->release(block, kBytes);
    stream->wait();
    const bool kept = device->free_memory_bytes() <= before - kBytes + kTolerance;
    EXPECT_EQ(kept, keeps_what_is_released(GetParam()));
  }
  allocator.reset();
  EXPECT_GE(device->free_memory_bytes() + kTolerance, before);
}

/// Of what a GPU can have. Another block can be had then.
TEST_P(GpuAllocator, SaysWhenThereIsNotSoMuch) {
  EXPECT_THROW(allocator->allocate(std::size_t{1} << 42), OutOfMemory);
  void* const block = allocator->allocate(1 << 20);
  allocator->touch(block, 1 << 20);
  allocator->release(block, 1 << 20);
}

std::vector<AllocatorKind> kinds_of_gpus() {
  std::vector<AllocatorKind> kinds;
  for (const AllocatorKindInfo& info : allocator_kinds()) {
    if (!info.on_gpu.empty()) kinds.push_back(info.kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kind,
                         GpuAllocator,
                         testing::ValuesIn(kinds_of_gpus()),
                         [](const auto& kind) { return std::string(info_of(kind.param).name); });

/// The default pool is one: what an allocator tells it holds no longer than the allocator lives.
TEST_F(GpuMemory, TheDefaultPoolKeepsWhatItIsToldToAndNoLonger) {
  constexpr std::size_t kBytes = 64 << 20;
  const auto keeps = [&](AllocatorKind kind) {
    const auto allocator = device->allocator(*stream, kind);
    const std::uint64_t before = device->free_memory_bytes();
    allocator->release(allocator->allocate(kBytes), kBytes);
    stream->wait();
    return device->free_memory_bytes() + kTolerance < before;
  };
  SKIP_UNLESS_SUPPORTED(device->allocator(*stream, AllocatorKind::pool));
  EXPECT_TRUE(keeps(AllocatorKind::pool));
  EXPECT_FALSE(keeps(AllocatorKind::pool_t0));
  {
    const auto outer = device->allocator(*stream, AllocatorKind::pool_t0);
    EXPECT_TRUE(keeps(AllocatorKind::pool));
    const std::uint64_t before = device->free_memory_bytes();
    outer->release(outer->allocate(kBytes), kBytes);
    stream->wait();
    EXPECT_GE(device->free_memory_bytes() + kTolerance, before) << "the threshold was not put back";
  }
}

TEST_F(GpuMemory, TheLastPartOfTheMemoryIsNotToBeTaken) {
  const std::uint64_t all = device->facts().memory_bytes.value_or(0);
  EXPECT_LE(allocatable_bytes(*device), device->free_memory_bytes() - all / 20 + kTolerance);
}

}  // namespace
}  // namespace launchgap
