#include "harness/summary/stragglers.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace launchgap {
namespace {

using Times = std::vector<std::vector<double>>;

/// Ranks whose steps take 100 ms and vary by `scatter`; one of them is slower by a share.
Times drawn(std::size_t ranks,
            std::size_t steps,
            double scatter,
            double slower,
            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> normal;
  Times times(ranks, std::vector<double>(steps));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (double& time : times[rank])
      time = 1e8 * (rank == 1 ? 1 + slower : 1) * std::exp(scatter * normal(random));
  }
  return times;
}

TEST(Stragglers, APersistentOneIsNamed) {
  for (const std::size_t ranks : {2u, 4u, 8u}) {
    const StragglerCheck check = check_stragglers(drawn(ranks, 30, 0.02, 0.1, ranks));
    EXPECT_EQ(check.straggler, Straggler::persistent) << ranks;
    EXPECT_EQ(check.slowest, 1u);
    EXPECT_NEAR(check.slower, 0.1, 0.03) << ranks;
    EXPECT_GT(check.slowest_steps, 25u);
  }
}

TEST(Stragglers, WhatIsLostIsTheSlowestLessTheMedian) {
  const Times times = {{100, 100}, {130, 110}, {100, 100}};
  const StragglerCheck check = check_stragglers(times);
  EXPECT_DOUBLE_EQ(check.lost_ns, 20);
  EXPECT_DOUBLE_EQ(check.lost_share, 0.2);
  EXPECT_DOUBLE_EQ(check.usual_share, 0.2);
}

TEST(Stragglers, ARotatingOneIsToldFromAPersistentOne) {
  const StragglerCheck check = check_stragglers(drawn(8, 50, 0.15, 0, 3));
  EXPECT_EQ(check.straggler, Straggler::rotating);
  EXPECT_NEAR(check.lost_share, 1.42 * 0.15, 0.07) << "the largest of 8 is 1.42 deviations above";
}

TEST(Stragglers, NobodyIsNamedWhereAllAreAlike) {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::size_t ranks = 2 + seed % 7;
    told += check_stragglers(drawn(ranks, 20, 0.02, 0, seed)).straggler == Straggler::none ? 0 : 1;
  }
  EXPECT_LE(told, 10) << "1 in 100 at most";
}

TEST(Stragglers, SmallDifferencesAreNone) {
  EXPECT_EQ(check_stragglers(drawn(4, 100, 0.001, 0.01, 1)).straggler, Straggler::none)
      << "always the slowest, by 1 %";
}

TEST(Stragglers, OneLongStepIsNone) {
  Times times = drawn(4, 50, 0.005, 0, 1);
  times[2][17] *= 100;
  EXPECT_EQ(check_stragglers(times).straggler, Straggler::none) << "a checkpoint, say";
}

TEST(Stragglers, AFewSlowStepsInARowAreNotPersistent) {
  Times times = drawn(4, 60, 0.005, 0, 1);
  for (std::size_t step = 20; step < 45; ++step) times[2][step] *= 1.3;
  EXPECT_NE(check_stragglers(times).straggler, Straggler::persistent)
      << "42 % of the steps, and chance makes 25 %";
}

TEST(Stragglers, AreWaitedForWhereTheWholeStepsDifferByHalfAsMuchAtMost) {
  const Times own = {std::vector<double>(20, 100), std::vector<double>(20, 110)};
  const auto waited = [&](double whole) {
    const Times with_waits = {std::vector<double>(20, 200), std::vector<double>(20, whole)};
    const StragglerCheck check = check_stragglers(own, with_waits);
    EXPECT_EQ(check.straggler, Straggler::persistent);
    return check.waited;
  };
  EXPECT_TRUE(waited(200));
  EXPECT_TRUE(waited(209)) << "4.5 % of 10 %";
  EXPECT_FALSE(waited(211));
  EXPECT_FALSE(check_stragglers(own).waited);
}

TEST(Stragglers, InTurnAreWaitedForByTheSameRule) {
  Times own(3, std::vector<double>(30, 100)), whole(3, std::vector<double>(30, 200));
  for (std::size_t step = 0; step < 30; ++step) own[step % 3][step] = 140;
  EXPECT_TRUE(check_stragglers(own, whole).waited);
  for (std::size_t step = 0; step < 30; ++step) whole[step % 3][step] = 220;
  EXPECT_TRUE(check_stragglers(own, whole).waited) << "20 of 40";
  for (std::size_t step = 0; step < 30; ++step) whole[step % 3][step] = 221;
  const StragglerCheck check = check_stragglers(own, whole);
  EXPECT_EQ(check.straggler, Straggler::rotating);
  EXPECT_FALSE(check.waited);
}

TEST(Stragglers, NeedRanksAndSteps) {
  EXPECT_EQ(check_stragglers(Times{}).straggler, Straggler::none);
  EXPECT_EQ(check_stragglers(Times{{1, 2, 3}}).straggler, Straggler::none);
  EXPECT_EQ(check_stragglers(Times{{}, {}}).straggler, Straggler::none);
  EXPECT_EQ(check_stragglers(drawn(2, 4, 0.01, 1, 1)).straggler, Straggler::none)
      << "the slower of two in 4 of 4 steps is so by chance in 1 of 8";
}

}  // namespace
}  // namespace launchgap
