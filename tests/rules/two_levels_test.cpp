#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "harness/rules/nights.h"

namespace launchgap::rules {
namespace {

/// As many values as `is_upper` has letters, at 1000, or where it says u `apart` above; every
/// second one of a level is `spread` above it, and the others are as much below.
std::vector<double> at_two_levels(const std::string& is_upper,
                                  double apart,
                                  double spread = 0.001) {
  std::vector<double> values;
  bool above[2] = {};
  for (const char letter : is_upper) {
    bool& is_above = above[letter == 'u'];
    is_above = !is_above;
    values.push_back(1000 * std::exp((letter == 'u' ? apart : 0) + (is_above ? spread : -spread)));
  }
  return values;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TwoLevels, AreFoundWhereValuesGoToAndFro) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back((i % 5 ? 1000 : 1060) + i % 7);
  const auto found = two_levels(values);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->lower, 1003, 1);
  EXPECT_NEAR(found->upper, 1063, 1);
  std::ranges::sort(values);
  EXPECT_FALSE(two_levels(values)) << "one change is a new level";
  std::rotate(values.begin(), values.begin() + 20, values.end());
  EXPECT_FALSE(two_levels(values)) << "two changes are a bad time";
}

TEST(TwoLevels, AreNotWhatANewLevelAndAStrayValueAre) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back((i < 40 ? 1000 : 950) + i % 7);
  values[10] = 970;  // nearer to the new level, and long before it
  EXPECT_FALSE(two_levels(values));
}

TEST(TwoLevels, AreThreePercentApart) {
  const std::string every_third = repeated("llu", 20);
  EXPECT_FALSE(two_levels(at_two_levels(every_third, std::log(1.0299))));
  EXPECT_TRUE(two_levels(at_two_levels(every_third, std::log(1.0301))));
}

TEST(TwoLevels, AreFurtherApartThanTheyVary) {
  // Of 72 values 3.5 times as far: 0.05 / 3.5 = 0.01429, less for n - 1 in the denominators.
  const std::string every_third = repeated("llu", 24);
  EXPECT_TRUE(two_levels(at_two_levels(every_third, 0.05, 0.0139)));
  EXPECT_FALSE(two_levels(at_two_levels(every_third, 0.05, 0.0142)));
  const auto found = two_levels(at_two_levels(every_third, 0.05, 0.01));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->deviation, 0.01 * std::sqrt((48.0 / 47 + 24.0 / 23) / 2), 1e-12);
}

TEST(TwoLevels, HaveATenthOfTheValuesEachAndThree) {
  EXPECT_FALSE(two_levels(at_two_levels(repeated("lllllullll", 2), 0.06))) << "two of twenty";
  EXPECT_TRUE(two_levels(at_two_levels("llullllllllullllulll", 0.06)));
  EXPECT_FALSE(two_levels(at_two_levels(repeated("lllllulllll", 3) + "ll", 0.06))) << "three of 35";
  EXPECT_TRUE(two_levels(at_two_levels(repeated("lllllulll", 4), 0.06))) << "four of 36";
  EXPECT_TRUE(two_levels(at_two_levels(repeated("uuuuuluuu", 4), 0.06)));
}

TEST(TwoLevels, AreChangedBetweenFourTimes) {
  const std::string lower(12, 'l'), upper(12, 'u');
  EXPECT_FALSE(two_levels(at_two_levels(lower + upper + lower + upper, 0.06)));
  EXPECT_TRUE(two_levels(at_two_levels(lower + upper + lower + upper + lower, 0.06)));
}

}  // namespace
}  // namespace launchgap::rules
