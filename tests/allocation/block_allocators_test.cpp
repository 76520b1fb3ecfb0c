#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "harness/allocation/block_allocator.h"
#include "harness/allocation/replay.h"
#include "harness/core/errors.h"

namespace launchgap::allocation {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

struct Made {
  Made(std::string_view name, std::uint64_t limit)
      : memory(limit), own(block_allocator_named(name).make(memory, limit)) {}

  BlockId take(std::uint64_t bytes, std::uint32_t stream = 0) {
    const auto block = own->allocate(bytes, stream, 0);
    EXPECT_TRUE(block) << bytes;
    return block.value_or(0);
  }
  bool fails(std::uint64_t bytes, std::uint32_t stream = 0) {
    return !own->allocate(bytes, stream, 0).has_value();
  }
  std::uint64_t reserved() const { return own->holding().reserved; }

  SimulatedMemory memory;
  std::unique_ptr<BlockAllocator> own;
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const BlockAllocatorInfo& info : block_allocators()) all.emplace_back(info.name);
  return all;
}

class EveryAllocator : public testing::TestWithParam<std::string> {};

/// Whatever is asked of it: blocks lie apart and within what it holds, its sums are right, and all
/// memory goes back.
TEST_P(EveryAllocator, KeepsItsBooks) {
  constexpr std::uint64_t kLimit = 600 * kMiB;
  std::mt19937_64 random(7);
  SimulatedMemory memory(kLimit);
  {
    const auto own = block_allocator_named(GetParam()).make(memory, kLimit);
    std::map<BlockId, std::uint64_t> live;  // and how much was asked for
    int failed = 0;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      if (!live.empty() && random() % 100 < 48) {
        auto at = live.begin();
        std::advance(at, random() % live.size());
        own->release(at->first);
        live.erase(at);
      } else {
        const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (8 + random() % 19));
        const std::uint64_t align = random() % 8 == 0 ? 4096 : 0;
        const auto block = own->allocate(bytes, i % 3, align);
        if (!block) {
          ++failed;
        } else {
          ASSERT_TRUE(live.try_emplace(*block, bytes).second);
          ASSERT_GE(own->granted_bytes(*block), bytes);
        }
      }
      if (i % 97 == 0 && random() % 4 == 0) own->trim();
      if (i % 13 != 0) continue;
      Holding sum;
      Address end = 0;
      std::uint64_t requested = 0;
      own->for_each_part([&](const Part& part) {
        ASSERT_GE(part.address, end);
        ASSERT_GT(part.bytes, 0u);
        end = part.address + part.bytes;
        sum.reserved += part.bytes;
        requested += part.requested;
        (part.requested == 0 ? sum.free : sum.granted) += part.bytes;
        if (part.requested == 0) sum.largest_free = std::max(sum.largest_free, part.bytes);
      });
      ASSERT_EQ(own->holding(), sum) << i;
      ASSERT_EQ(memory.taken_bytes(), sum.reserved);
      ASSERT_LE(sum.reserved, kLimit);
      std::uint64_t asked = 0;
      for (const auto& [block, bytes] : live) asked += bytes;
      ASSERT_EQ(requested, asked);
    }
    EXPECT_GT(failed, 0) << "the limit was never met";
  }
  EXPECT_EQ(memory.taken_bytes(), 0u);
}

/// All of one size, freed in any order, is one free block again.
TEST_P(EveryAllocator, GetsBackWhatItCut) {
  Made made(GetParam(), kGiB);
  std::vector<BlockId> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(made.take(64 * kKiB));
  std::mt19937_64 random(3);
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (const BlockId block : blocks) made.own->release(block);
  EXPECT_EQ(made.own->holding().granted, 0u);
  if (GetParam() == "bfc" || GetParam() == "bfc_vmm" || GetParam() == "caching_expandable") {
    EXPECT_EQ(made.own->holding().largest_free, made.reserved());
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryAllocator, testing::ValuesIn(names()), [](const auto& one) {
  return one.param;
});

TEST(BlockAllocators, AnUnknownNameIsAnsweredWithThose) {
  EXPECT_THAT([] { block_allocator_named("bcf"); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("'bcf': there are bfc, ")));
}

// --- closed forms ---

TEST(Fragmentation, OfACheckerboardIsOneMinusTwoByN) {
  for (const std::uint64_t n : {8, 64, 512}) {
    constexpr std::uint64_t kBlock = 1 * kMiB;
    Made made("bfc", n * kBlock);
    std::vector<BlockId> blocks;
    for (std::uint64_t i = 0; i < n; ++i) blocks.push_back(made.take(kBlock));
    for (std::uint64_t i = 1; i < n; i += 2) made.own->release(blocks[i]);
    const MemoryMoment now = moment_of(*made.own, n / 2 * kBlock);
    EXPECT_EQ(now.largest_block_index, 1 - 2.0 / static_cast<double>(n)) << n;
    EXPECT_EQ(now.free_bytes, n / 2 * kBlock);
    EXPECT_TRUE(made.fails(2 * kBlock)) << n;
    EXPECT_FALSE(made.fails(kBlock)) << n;
  }
}

TEST(Fragmentation, OfACombGoesToOneMinusOneByN) {
  for (const std::uint64_t n : {8, 64, 512}) {
    constexpr std::uint64_t kLarge = 4 * kMiB, kPin = 256;
    // With room for one more, without which the last would get all that is left.
    Made made("bfc", n * (kLarge + kPin) + kLarge);
    std::vector<BlockId> large;
    for (std::uint64_t i = 0; i < n; ++i) {
      large.push_back(made.take(kLarge));
      made.take(kPin);
    }
    for (const BlockId block : large) made.own->release(block);
    const MemoryMoment now = moment_of(*made.own, n * kPin);
    EXPECT_EQ(now.largest_block_index, 1 - 1.0 / static_cast<double>(n + 1)) << n;
    EXPECT_TRUE(made.fails(2 * kLarge)) << n;
  }
}

/// PyTorch's pull request 193400: 91, 45.5 and 2 MiB, of which the last stays.
TEST(Fragmentation, PinsGrowAsPublished) {
  const auto reserved_after = [](std::string_view name, int cycles) {
    Made made(name, 64 * kGiB);
    for (int i = 0; i < cycles; ++i) {
      const BlockId first = made.take(91 * kMiB), second = made.take(91 * kMiB / 2);
      made.take(2 * kMiB);
      made.own->release(first);
      made.own->release(second);
    }
    return made.reserved() / kMiB;
  };
  EXPECT_EQ(reserved_after("caching", 1), 158u);
  EXPECT_EQ(reserved_after("caching", 101), 358u);
  EXPECT_EQ(reserved_after("bfc_growth", 1), 256u);
  EXPECT_EQ(reserved_after("bfc_growth", 101), 512u);
}

TEST(Fragmentation, OfNothingIsNothing) {
  Made made("bfc", kMiB);
  const MemoryMoment empty = moment_of(*made.own, 0);
  EXPECT_EQ(empty.largest_block_index, 0);
  EXPECT_EQ(empty.internal_waste, 0);
  EXPECT_EQ(empty.reserve_slack, 0);
  EXPECT_EQ(empty.unusable.front().index, 1) << "no free memory counts as unusable";
  made.take(kMiB);  // full: 0 of 0 bytes
  EXPECT_EQ(moment_of(*made.own, kMiB).largest_block_index, 0);
  EXPECT_EQ(occupancy(*made.own, 10), "**********");
}

TEST(Fragmentation, UnusableIsWhatIsTooSmall) {
  Made made("bfc", 16 * kMiB);
  const BlockId first = made.take(kMiB);
  made.take(kMiB);
  made.own->release(first);  // 1 MiB and 14 MiB are free
  const MemoryMoment now = moment_of(*made.own, kMiB);
  EXPECT_DOUBLE_EQ(now.unusable[0].index, 0);
  EXPECT_DOUBLE_EQ(now.unusable[1].index, 1.0 / 15);  // for 2 MiB
  EXPECT_DOUBLE_EQ(now.unusable[3].index, 1);         // for 32 MiB
  EXPECT_EQ(occupancy(*made.own, 16), "_*______________");
  EXPECT_EQ(occupancy(*made.own, 8), "*_______") << "half used, half free";
}

// --- the rules ---

TEST(Bfc, SplitsFromTwiceTheSizeOrWhereMuchWouldBeWasted) {
  Made exact("bfc", 2048 * kMiB);
  exact.take(1025 * kMiB);  // 1023 MiB are left: 128 MiB more than the next would need
  EXPECT_EQ(exact.own->granted_bytes(exact.take(895 * kMiB)), 895 * kMiB);
  Made waste("bfc", 2048 * kMiB);
  waste.take(1025 * kMiB);
  EXPECT_EQ(waste.own->granted_bytes(waste.take(896 * kMiB)), 1023 * kMiB);
  Made twice("bfc", kMiB);
  EXPECT_EQ(twice.own->granted_bytes(twice.take(kMiB / 2)), kMiB / 2);
  EXPECT_EQ(twice.own->granted_bytes(twice.take(kMiB / 4 + 1)), kMiB / 2);
}

TEST(Bfc, RegionsThatGrowDoNotMergeUnlessTheyAreMapped) {
  for (const bool mapped : {false, true}) {
    Made made(mapped ? "bfc_vmm" : "bfc_growth", 8 * kMiB);
    const BlockId a = made.take(2 * kMiB), b = made.take(4 * kMiB);
    made.own->release(a);
    made.own->release(b);
    EXPECT_EQ(made.fails(6 * kMiB), !mapped);
  }
}

TEST(Bfc, CollectionGivesBackWholeRegionsWhereNothingFits) {
  Made made("bfc_growth_gc", 8 * kMiB);
  made.own->release(made.take(2 * kMiB));
  made.own->release(made.take(4 * kMiB));
  EXPECT_EQ(made.reserved(), 6 * kMiB);
  EXPECT_TRUE(made.fails(8 * kMiB + 1));
  EXPECT_EQ(made.reserved(), 6 * kMiB) << "nothing is given back in vain";
  made.take(8 * kMiB);
  EXPECT_EQ(made.reserved(), 8 * kMiB);
  Made kept("bfc_growth", 8 * kMiB);
  kept.own->release(kept.take(2 * kMiB));
  kept.own->release(kept.take(4 * kMiB));
  EXPECT_TRUE(kept.fails(7 * kMiB));
}

TEST(Bfc, AlignmentIsKept) {
  Made made("bfc", 64 * kMiB);
  made.take(256);
  const auto block = made.own->allocate(1000, 0, kMiB);
  ASSERT_TRUE(block);
  EXPECT_EQ(made.own->address(*block) % kMiB, 0u);
}

TEST(Caching, StreamsHaveBlocksOfTheirOwn) {
  Made made("caching", kGiB);
  const BlockId block = made.take(4 * kMiB, 1);
  const Address address = made.own->address(block);
  made.own->release(block);
  EXPECT_NE(made.own->address(made.take(4 * kMiB, 2)), address);
  EXPECT_EQ(made.own->address(made.take(4 * kMiB, 1)), address);
}

TEST(Caching, FreeSegmentsAreGivenBackWhereNoneCanBeHad) {
  Made made("caching", 100 * kMiB);
  const BlockId first = made.take(60 * kMiB);
  EXPECT_TRUE(made.fails(60 * kMiB));
  made.own->release(first);
  made.take(90 * kMiB);
  EXPECT_EQ(made.reserved(), 90 * kMiB);
}

TEST(Caching, ExpandableSegmentsTakeAGrowingBatchWithoutSlivers) {
  const auto reserved_after = [](std::string_view name) {
    Made made(name, 64 * kGiB);
    for (std::uint64_t batch = 16; batch <= 32; ++batch) {
      std::vector<BlockId> blocks;
      for (int layer = 0; layer < 50; ++layer) {
        blocks.push_back(made.take(batch * kMiB));
        blocks.push_back(made.take(4 * batch * kMiB));
      }
      for (const BlockId block : blocks) made.own->release(block);
    }
    return static_cast<double>(made.reserved()) / static_cast<double>(kMiB * 50 * 5 * 32);
  };
  EXPECT_LT(reserved_after("caching_expandable"), 1.01);
  EXPECT_GT(reserved_after("caching"), 2);
}

TEST(Caching, ExpandableGivesFreePagesBackOneByOne) {
  Made made("caching_expandable", 100 * kMiB);
  const BlockId first = made.take(60 * kMiB), pin = made.take(20 * kMiB);
  EXPECT_TRUE(made.fails(60 * kMiB));
  made.own->release(first);
  made.take(70 * kMiB, 1);  // another stream's, so pages must go
  EXPECT_LE(made.reserved(), 100 * kMiB);
  made.own->release(pin);
  made.own->trim();
  EXPECT_EQ(made.reserved(), 80 * kMiB);
}

}  // namespace
}  // namespace launchgap::allocation
