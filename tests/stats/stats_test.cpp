#include "harness/stats/stats.h"

#include <vector>

#include <gtest/gtest.h>

namespace launchgap::stats {
namespace {

TEST(Median, OfTheOthersLeavesOutOne) {
  const std::vector<double> values = {9, 1, 4, 2};
  EXPECT_EQ(median_of_others(values, 0), 2);
  EXPECT_EQ(median_of_others(values, 1), 4);
  EXPECT_EQ(median_of_others(values, 3), 4);
  EXPECT_EQ(median_of_others({3, 3, 3}, 1), 3) << "one of those that are alike";
  EXPECT_EQ(median_of_others({5, 7}, 0), 7);
  EXPECT_EQ(median_of_others({5}, 0), std::nullopt);
}

}  // namespace
}  // namespace launchgap::stats
