#include <vector>

#include <gtest/gtest.h>

#include "harness/stats/stats.h"

namespace launchgap {
namespace {

TEST(Trend, TheilAndSensSlopeIsTheMedianOfPairs) {
  EXPECT_DOUBLE_EQ(stats::theil_sen_slope(std::vector<double>{1, 3, 5, 7}), 2);
  EXPECT_DOUBLE_EQ(stats::theil_sen_slope(std::vector<double>{1, 3, 5, 7, 1000}), 2);
  EXPECT_DOUBLE_EQ(stats::theil_sen_slope(std::vector<double>{4}), 0);
  EXPECT_DOUBLE_EQ(stats::theil_sen_slope(std::vector<double>{2, 1}), -1);
}

TEST(Trend, MannAndKendallsTest) {
  EXPECT_LT(stats::mann_kendall_rise_p(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 1e-4);
  EXPECT_GT(stats::mann_kendall_rise_p(std::vector<double>{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}), 0.999);
  EXPECT_EQ(stats::mann_kendall_rise_p(std::vector<double>(30, 4)), 1);
  EXPECT_EQ(stats::mann_kendall_rise_p(std::vector<double>{1, 2, 3}), 1);
  // By hand: S = 6 of 6 pairs, variance 26/3, z = 5 / 2.9439.
  EXPECT_NEAR(stats::mann_kendall_rise_p(std::vector<double>{1, 2, 3, 4}), 0.0447, 0.0005);
  // S = 8 of 10 pairs, variance 50/3, z = 7 / 4.0825.
  EXPECT_NEAR(stats::mann_kendall_rise_p(std::vector<double>{1, 3, 2, 4, 5}), 0.0432, 0.0005);
  // With a tie: S = 9, variance 47/3, z = 8 / 3.9581.
  EXPECT_NEAR(stats::mann_kendall_rise_p(std::vector<double>{1, 2, 2, 3, 4}), 0.0216, 0.0005);
}

}  // namespace
}  // namespace launchgap
