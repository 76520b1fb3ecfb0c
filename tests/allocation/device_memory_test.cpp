#include "harness/allocation/device_memory.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "harness/allocation/block_allocator.h"
#include "harness/allocation/device_player.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{256} << 20;

struct OverTheHost : testing::TestWithParam<std::string> {
  std::unique_ptr<Device> device = open_device("host", "host");
  std::unique_ptr<Stream> stream = device->create_stream();
};

/// A memory without end, whose first region cannot be had.
class Endless : public Memory {
 public:
  Address take(std::uint64_t) override { return taken_++; }
  void give_back(Address, std::uint64_t) override {}
  std::uint64_t page_bytes() const override { return 4096; }
  Address reserve(std::uint64_t) override { return 4096; }
  void unreserve(Address, std::uint64_t) override {}
  bool map(Address, std::uint64_t) override { return true; }
  void unmap(Address, std::uint64_t) override {}

 private:
  Address taken_ = 0;
};

TEST(LimitedMemory, HasWhatIsLeftAndWhatCameBack) {
  Endless endless;
  LimitedMemory memory(endless, 100);
  EXPECT_EQ(memory.take(100), 0u) << "what could not be had costs nothing";
  const Address first = memory.take(100);
  EXPECT_NE(first, 0u) << "all of it";
  EXPECT_EQ(memory.take(1), 0u);
  EXPECT_FALSE(memory.map(4096, 1));
  memory.give_back(first, 100);
  EXPECT_TRUE(memory.map(4096, 100)) << "all of it again";
  EXPECT_FALSE(memory.map(8192, 1));
  memory.unmap(4096, 100);
  EXPECT_EQ(memory.take(101), 0u);
  EXPECT_NE(memory.take(100), 0u);
}

/// Blocks of any size, given back in any order, hold what was written until then.
TEST_P(OverTheHost, BlocksAreApartAndHoldWhatIsWritten) {
  const auto allocator = allocator_named(*device, *stream, GetParam(), kLimit);
  struct Written {
    unsigned char* at;
    std::size_t bytes;
    unsigned char value;
  };
  std::vector<Written> live;
  std::mt19937 random(7);
  const auto release = [&](std::size_t which) {
    const Written block = live[which];
    for (const std::size_t at : {std::size_t{0}, block.bytes / 2, block.bytes - 1})
      ASSERT_EQ(block.at[at], block.value);
    allocator->release(block.at, block.bytes);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
  };
  for (int i = 0; i < 400; ++i) {
    if (live.size() > 20) release(random() % live.size());
    const std::size_t bytes = std::size_t{1} << (random() % 22) | 1;
    auto* const at = static_cast<unsigned char*>(allocator->allocate(bytes));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % (GetParam() == "pool" ? 64 : 16), 0u);
    const auto value = static_cast<unsigned char>(i);
    allocator->touch(at, bytes);
    std::memset(at, value, bytes);
    live.push_back({at, bytes, value});
  }
  while (!live.empty()) release(0);
}

TEST_P(OverTheHost, SaysWhenThereIsNotSoMuchAndGoesOn) {
  const auto allocator = allocator_named(*device, *stream, GetParam(), kLimit);
  EXPECT_THROW(allocator->allocate(std::size_t{1} << 48), OutOfMemory);
  void* const block = allocator->allocate(1000);
  allocator->release(block, 1000);
}

INSTANTIATE_TEST_SUITE_P(Allocator,
                         OverTheHost,
                         testing::ValuesIn(allocators_of(probe_devices("host").front())),
                         [](const auto& name) { return name.param; });

TEST(DeviceMemory, ABlockThatIsNoneIsAnError) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  const auto allocator = allocator_named(*device, *stream, "bfc", kLimit);
  void* const block = allocator->allocate(1000);
  allocator->release(block, 1000);
  EXPECT_THROW(allocator->release(block, 1000), Error);
  EXPECT_THROW(allocator_named(*device, *stream, "nonesuch", kLimit), UsageError);
}

TEST(DevicePlayer, ReservesOnTheHostWhatThePoolsOfItsStreamsHoldTogether) {
  const auto device = open_device("host", "host");
  const auto reserved_with = [&](std::uint32_t streams) {
    DevicePlayer player(*device, AllocatorKind::pool, kLimit);
    for (std::uint32_t i = 0; i < streams; ++i) {
      player.prepare(streams, i);
      EXPECT_TRUE(player.allocate(i, 4096, i, 0));
    }
    const std::uint64_t reserved = player.reserved_bytes();
    for (std::uint32_t i = 0; i < streams; ++i) player.release(i, 4096);
    return reserved;
  };
  EXPECT_GE(reserved_with(1), 4096u);
  EXPECT_EQ(reserved_with(3), 3 * reserved_with(1));
}

/// As an expandable segment does it: several pages at once, and any of them goes alone.
TEST(DeviceMemory, PagesOfOneCallAreUnmappedOneByOne) {
  const auto device = open_device("host", "host");
  const auto stream = device->create_stream();
  DeviceMemory memory(*device, *stream);
  constexpr std::uint64_t kPage = std::uint64_t{20} << 20;
  const Address range = memory.reserve(4 * kPage);
  ASSERT_NE(range, 0u);
  ASSERT_TRUE(memory.map(range, 3 * kPage));
  std::memset(reinterpret_cast<void*>(range + 2 * kPage), 5, 100);
  memory.unmap(range + kPage, kPage);
  EXPECT_EQ(*reinterpret_cast<char*>(range + 2 * kPage), 5);
  memory.unmap(range, kPage);
  memory.unmap(range + 2 * kPage, kPage);
  memory.unreserve(range, 4 * kPage);
}

}  // namespace
}  // namespace launchgap::allocation
