#include "benchmarks/chain_mix.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace launchgap {
namespace {

struct Shares {
  double below_9_us, from_9_to_140_us, from_140_us;
};

Shares shares_of(const std::vector<ChainOperation>& operations) {
  const auto share = [&](double from_us, double to_us) {
    const auto count = std::ranges::count_if(operations, [&](const ChainOperation& operation) {
      const double us = static_cast<double>(operation.nanoseconds) / 1e3;
      return us >= from_us && us < to_us;
    });
    return static_cast<double>(count) / static_cast<double>(operations.size());
  };
  return {share(0, 9), share(9, 140), share(140, 1e9)};
}

// Of the traces: half of the kernels 2 to 9 us, four tenths 9 to 140 us, a tenth up to 500 us; 69
// allocations per 100 operations.
class ChainMix : public ::testing::TestWithParam<int> {};

TEST_P(ChainMix, HasTheDurationsOfTheTraces) {
  const int count = GetParam();
  const auto operations = chain_operations(count, 7);
  ASSERT_EQ(operations.size(), static_cast<std::size_t>(count));
  const Shares shares = shares_of(operations);
  const double one = 1.0 / count;
  EXPECT_NEAR(shares.below_9_us, 0.5, one);
  EXPECT_NEAR(shares.from_9_to_140_us, 0.4, one);
  EXPECT_NEAR(shares.from_140_us, 0.1, one);
  for (const ChainOperation& operation : operations) {
    EXPECT_GE(operation.nanoseconds, 2'000u);
    EXPECT_LE(operation.nanoseconds, 500'000u);
  }
}

TEST_P(ChainMix, AllocatesAsOftenAsTheTraces) {
  const int count = GetParam();
  const auto operations = chain_operations(count, 7);
  const auto allocating = std::ranges::count_if(
      operations, [](const ChainOperation& operation) { return operation.allocated_bytes > 0; });
  EXPECT_NEAR(static_cast<double>(allocating), 0.69 * count, 0.5);
  for (const ChainOperation& operation : operations) {
    if (operation.allocated_bytes == 0) continue;
    EXPECT_GE(operation.allocated_bytes, 4096u);
    EXPECT_LE(operation.allocated_bytes, 4u << 20);
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryLength, ChainMix, ::testing::Values(8, 64, 512, 4096));

TEST(ChainMix, QuantilesOfALongChainAreThoseOfTheMix) {
  auto operations = chain_operations(4096, 1);
  std::ranges::sort(operations, {}, &ChainOperation::nanoseconds);
  const auto quantile_us = [&](double p) {
    return static_cast<double>(operations[static_cast<std::size_t>(p * 4095)].nanoseconds) / 1e3;
  };
  EXPECT_NEAR(quantile_us(0.25), std::sqrt(2.0 * 9.0), 0.02);
  EXPECT_NEAR(quantile_us(0.5), 9, 0.05);
  EXPECT_NEAR(quantile_us(0.7), std::sqrt(9.0 * 140.0), 0.2);
  EXPECT_NEAR(quantile_us(0.9), 140, 1);
}

TEST(ChainMix, TheSeedDecidesTheOrderAndNothingElse) {
  const auto durations = [](std::uint64_t seed) {
    std::vector<std::uint64_t> all;
    for (const auto& operation : chain_operations(64, seed)) all.push_back(operation.nanoseconds);
    return all;
  };
  EXPECT_EQ(durations(1), durations(1));
  EXPECT_NE(durations(1), durations(2));
  const auto sorted = [](std::vector<std::uint64_t> values) {
    return std::multiset<std::uint64_t>(values.begin(), values.end());
  };
  EXPECT_EQ(sorted(durations(1)), sorted(durations(2)));
}

// A wait every 143 operations is what 60 waits in 8,568 launches are.
TEST(ChainMix, WaitsAsOftenAsTheTraces) {
  EXPECT_NEAR(8568.0 / kOperationsPerWait, 60, 0.5);
}

}  // namespace
}  // namespace launchgap
