#include "harness/rules/factors.h"

#include <gtest/gtest.h>

namespace launchgap::rules {
namespace {

// By scipy.stats.f_oneway and spearmanr; the former's 1.07e-5 is less than one way in 70.
TEST(Explained, AgreesWithScipy) {
  const std::vector<double> logs = {1.0, 1.1, 0.9, 2.0, 2.2, 1.9, 1.05, 2.1};
  const auto groups = explained(logs, {{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"b"}, {"a"}, {"b"}});
  ASSERT_TRUE(groups);
  EXPECT_NEAR(groups->variance_share, 0.9676921, 1e-6);
  EXPECT_NEAR(groups->chance, 1.0 / 70, 1e-9);
  const auto numbers = explained(
      logs, {{"", 1}, {"", 2}, {"", 1.5}, {"", 4}, {"", 3}, {"", 3.5}, {"", 2.5}, {"", 5}});
  ASSERT_TRUE(numbers);
  EXPECT_NEAR(numbers->variance_share, 0.6553288, 1e-6);
  EXPECT_NEAR(numbers->chance, 0.0149027, 1e-6);
}

TEST(Explained, SaysNothingWhereNothingCanBeSaid) {
  const std::vector<double> six = {1, 2, 3, 4, 5, 6};
  const std::vector<FactorValue> halves = {{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"b"}};
  EXPECT_TRUE(explained(six, halves));
  EXPECT_FALSE(explained({1, 2, 3, 4, 5}, {halves.begin(), halves.end() - 1})) << "five runs";
  EXPECT_FALSE(explained(six, std::vector<FactorValue>(6, {"a"}))) << "nothing differs";
  EXPECT_FALSE(explained(six, {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}})) << "each by itself";
  EXPECT_FALSE(explained(std::vector<double>(6, 1), halves)) << "all are as fast";
  EXPECT_FALSE(explained(six, {{"a"}, {"a"}, {""}, {"b"}, {"b"}, {"b"}})) << "one does not tell";
}

TEST(FactorVerdict, IsByShareAndByChanceTimesWhatWasTried) {
  EXPECT_EQ(name_of(verdict_of({0.9, 0.001}, 5)), "explains");
  EXPECT_EQ(name_of(verdict_of({0.9, 0.001}, 20)), "may-be-chance");
  EXPECT_EQ(name_of(verdict_of({0.3, 0.0001}, 5)), "in-part");
}

}  // namespace
}  // namespace launchgap::rules
