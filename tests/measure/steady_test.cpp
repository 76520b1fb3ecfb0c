#include <gtest/gtest.h>

#include "harness/measure/warm_up.h"

namespace launchgap {
namespace {

/// Blocks of three samples of one metric, whose medians are these.
bool steady_after(const std::vector<double>& medians) {
  SteadyRule rule;
  for (const double median : medians) {
    Block block({"api_ns"}, 3);
    block.restart();
    for (const double offset : {-50.0, 0.0, 900.0}) block.keep(0, median + offset);
    rule.add(block);
  }
  return rule.steady();
}

TEST(SteadyRule, FiveBlocksAreNeverEnough) {
  EXPECT_FALSE(steady_after({}));
  EXPECT_FALSE(steady_after({1000}));
  EXPECT_FALSE(steady_after({1000, 1000, 1000, 1000, 1000}));
  EXPECT_TRUE(steady_after({1000, 1000, 1000, 1000, 1000, 1000}));
}

// The interval of six is from the smallest to the largest.
TEST(SteadyRule, OneHundredthOfTheMedianIsTheLimit) {
  EXPECT_TRUE(steady_after({1000, 1000, 1000, 1000, 1000, 1010}));
  EXPECT_FALSE(steady_after({1000, 1000, 1000, 1000, 1000, 1011}));
}

TEST(SteadyRule, AStrayBlockCostsMoreBlocksAndNotEverything) {
  EXPECT_FALSE(steady_after({2000, 1000, 1000, 1000, 1000, 1000}));
  EXPECT_TRUE(steady_after({2000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}));
}

TEST(SteadyRule, EveryMetricMustBeSteady) {
  SteadyRule rule;
  for (int i = 0; i < 6; ++i) {
    Block block({"api_ns", "roundtrip_ns"}, 1);
    block.restart();
    block.keep(0, 1000.0, 5000.0 + 100 * i);
    rule.add(block);
  }
  EXPECT_FALSE(rule.steady());
}

TEST(SteadyRule, AMetricWithoutValuesDecidesNothing) {
  SteadyRule rule;
  for (int i = 0; i < 6; ++i) {
    Block block({"queue_depth"}, 1);
    block.restart();
    block.keep(0, Block::kMissing);
    rule.add(block);
  }
  EXPECT_FALSE(rule.steady());
}

}  // namespace
}  // namespace launchgap
