#include "harness/rules/ratio.h"

#include <vector>

#include <gtest/gtest.h>

#include "harness/rules/two_sessions.h"

namespace launchgap::rules {
namespace {

TEST(Speedups, WithoutRunsAreJudgedByTheirValueAndTwoPerCent) {
  const auto verdict = [](double times) { return speedup(times, {}, {}, 10).verdict(); };
  EXPECT_EQ(verdict(1.0201), SpeedVerdict::faster);
  EXPECT_EQ(verdict(1.0199), SpeedVerdict::same);
  EXPECT_EQ(verdict(1 / 1.0199), SpeedVerdict::same);
  EXPECT_EQ(verdict(1 / 1.0201), SpeedVerdict::slower);
}

TEST(Speedups, AmongManyCasesHaveToBeSurer) {
  const std::vector<double> fast = {110, 112, 109, 111}, slow = {105, 106, 104, 107};
  const Speedup alone = speedup(1.047, fast, slow, 1), of_many = speedup(1.047, fast, slow, 1000);
  ASSERT_TRUE(alone.interval && alone.certain && of_many.certain);
  EXPECT_EQ(alone.interval->low, of_many.interval->low) << "of its own it is the same";
  EXPECT_LT(of_many.certain->low, alone.certain->low);
  EXPECT_EQ(alone.verdict(), SpeedVerdict::faster);
  EXPECT_EQ(of_many.verdict(), SpeedVerdict::within_noise);
}

TEST(Speedups, LieWithinTheirOwnInterval) {
  const std::vector<double> fast = {100, 100.1, 99.9}, slow = {100, 100.1, 99.9};
  const Speedup off = speedup(1.5, fast, slow, 1);  // a median over all samples may be elsewhere
  EXPECT_EQ(off.at_most(), 1.5);
  EXPECT_EQ(off.verdict(), SpeedVerdict::within_noise);
}

TEST(Speedups, OfRunsOfWhichOneIsNotAboveZeroAreNeverCertain) {
  const std::vector<double> shares = {0.5, 0.6, -0.01}, others = {0.1, 0.11, 0.12};
  for (const double times : {5.0, 1.0, 0.2}) {
    const Speedup found = speedup(times, shares, others, 1);
    EXPECT_FALSE(found.interval);
    EXPECT_EQ(found.verdict(), SpeedVerdict::within_noise) << times;
    EXPECT_EQ(speedup(times, others, shares, 1).verdict(), SpeedVerdict::within_noise) << times;
  }
}

TEST(PooledRatio, OfOneValueHasTheScatterOfTheOthers) {
  const std::vector<double> many = {99, 100, 101}, one = {110};
  const auto found = pooled_ratio(one, many);
  ASSERT_TRUE(found && found->interval);
  EXPECT_NEAR(found->value, 1.1, 0.001);
  EXPECT_NEAR(found->interval->low, 1.1 / 1.0511, 0.001);
  EXPECT_FALSE(pooled_ratio(one, std::vector<double>{99, 101})->interval) << "three values in all";
  EXPECT_FALSE(pooled_ratio(one, {}));
  EXPECT_FALSE(pooled_ratio(one, std::vector<double>{0, 1, 2}));
}

// What else is judged of two sessions: regression/two_sessions_test.cpp.

SessionProcesses spread(double cv, double tail) {
  return {{}, {cv, cv * 1.01, cv * 0.99}, {tail, tail * 1.01, tail * 0.99}, {}, cv, {}};
}

TEST(TwoSessions, AreErraticFromOnePercentOn) {
  const auto judged = [](const SessionProcesses& before, const SessionProcesses& now) {
    return judge_spread(before, now).steadiness;
  };
  EXPECT_EQ(judged(spread(0.004, 1), spread(0.0099, 1)), Steadiness::same) << "both below 1 %";
  EXPECT_EQ(judged(spread(0.004, 1), spread(0.01, 1)), Steadiness::erratic);
}

}  // namespace
}  // namespace launchgap::rules
