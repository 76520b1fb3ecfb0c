#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "harness/regression/selftest.h"
#include "tests/random.h"
#include "tests/regression/simulated_nights.h"

namespace launchgap::regression {
namespace {

std::vector<rules::Night> nights(std::size_t count, double noise, double slow_share = 0) {
  std::mt19937_64 random(3);
  Normal normal;
  std::vector<rules::Night> nights;
  for (std::size_t i = 0; i < count; ++i) {
    rules::Night night;
    night.value =
        2000 * std::exp(noise * normal(random)) * (uniform(random) < slow_share ? 1.2 : 1);
    night.spread = {0.02 * std::exp(0.1 * normal(random)), 0.01, 1.1, 1};
    nights.push_back(night);
  }
  return nights;
}

TEST(NightResampling, FindsLessWhereNightsVaryMore) {
  const auto calm = resample_nights(nights(60, 0.005), Direction::lower_is_better, 0, 1);
  const auto loud = resample_nights(nights(60, 0.02), Direction::lower_is_better, 0, 1);
  ASSERT_TRUE(calm && loud);
  EXPECT_NEAR(calm->noise, 0.005, 0.002);
  EXPECT_NEAR(loud->noise, 0.02, 0.006);
  EXPECT_LE(calm->power.false_alarm_rate, 0.001);
  EXPECT_LE(loud->power.false_alarm_rate, 0.001);
  ASSERT_TRUE(calm->power.detectable && loud->power.detectable);
  EXPECT_LT(*calm->power.detectable, 0.045);  // 3 % count at all
  EXPECT_GE(*calm->power.detectable, 0.03);
  EXPECT_GT(*loud->power.detectable, 0.06);
  EXPECT_LT(*loud->power.detectable, 0.12);
  EXPECT_LE(*calm->power.erratic_rate, 0.001);
}

TEST(NightResampling, SmallStepsAreNotFoundWhereTheyDoNotCount) {
  const auto power = resample_nights(nights(60, 0.002), Direction::lower_is_better, 200, 1);
  ASSERT_TRUE(power && power->power.detectable);
  EXPECT_NEAR(*power->power.detectable, 0.1, 0.01);  // 200 ns of 2,000
}

TEST(NightResampling, WhatIsTwiceAsSlowIsTheMostThatIsSaid) {
  const auto detectable = [](double least_step) {
    const auto found =
        resample_nights(nights(60, 0.0002), Direction::lower_is_better, least_step, 1);
    EXPECT_TRUE(found);
    return found->power.detectable;
  };
  EXPECT_EQ(detectable(1995), 1);  // ns, of 2,000
  EXPECT_EQ(detectable(2005), std::nullopt);
}

TEST(NightResampling, WhatIsSteadyRaisesNoAlarm) {
  const auto found = resample_nights(nights(60, 0.0002), Direction::lower_is_better, 0, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->power.false_alarm_rate, 0);
  EXPECT_EQ(found->power.erratic_rate, 0);
}

TEST(NightResampling, ThroughputIsSlowerWhereItIsLess) {
  const auto power = resample_nights(nights(60, 0.005), Direction::higher_is_better, 0, 1);
  ASSERT_TRUE(power && power->power.detectable);
  EXPECT_LT(*power->power.detectable, 0.05);
}

TEST(NightResampling, TwoLevelsAreJudgedBeyondTheWorseOne) {
  const auto power = resample_nights(nights(60, 0.005, 0.3), Direction::lower_is_better, 0, 1);
  ASSERT_TRUE(power && power->power.detectable);
  EXPECT_LE(power->power.false_alarm_rate, 0.01);
  EXPECT_GT(*power->power.detectable, 0.15);  // the levels are 20 % apart
}

TEST(NightResampling, CountsABadTimeOnce) {
  std::vector<bool> alarms(30, false);
  EXPECT_EQ(alarms_that_begin(alarms), 0);
  for (const int at : {5, 6, 7, 9, 20}) alarms[static_cast<std::size_t>(at)] = true;
  EXPECT_EQ(alarms_that_begin(alarms), 2);
}

// Of fewer metrics than the table of docs/definitions.md has.
TEST(NightResampling, PredictsWhatIsCounted) {
  for (const NightKind& kind : kinds_without_change()) {
    const bool in_stretches = kind.name.starts_with("stretches");
    if (!in_stretches && !kind.name.starts_with("autocorrelated, 0.9")) continue;
    const Prediction found = predicted_and_counted(kind, 15, 77);
    EXPECT_GT(found.counted, 0) << kind.name;
    EXPECT_TRUE(found.holds(in_stretches))
        << kind.name << ": " << found.predicted << " predicted, " << found.counted << " counted";
  }
}

TEST(NightResampling, IsAbsentWhereItWouldSayNothing) {
  EXPECT_FALSE(resample_nights(nights(39, 0.01), Direction::lower_is_better, 0, 1));
  std::vector<rules::Night> with_zero = nights(60, 0.01);
  with_zero[5].value = 0;
  EXPECT_FALSE(resample_nights(with_zero, Direction::lower_is_better, 0, 1));
}

}  // namespace
}  // namespace launchgap::regression
