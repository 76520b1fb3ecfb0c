#include "harness/summary/stragglers.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>

namespace launchgap {
namespace {

using namespace testing;

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

TEST(Stragglers, TellWhichRankIsTheSlowestAloneAndByHowMuch) {
  const StragglerCheck check = check_stragglers(Times{{1, 1, 1, 1}, {2, 2, 2, 1}, {2, 1, 1, 1}});
  EXPECT_EQ(check.ranks, 3u);
  EXPECT_EQ(check.steps, 4u);
  EXPECT_EQ(check.slowest, 1u);
  EXPECT_EQ(check.slowest_steps, 2u) << "in one it shares that, and in another all are alike";
  EXPECT_DOUBLE_EQ(check.chance, 1);
  EXPECT_DOUBLE_EQ(check.slower, (1.0 / 3 + 1) / 2) << "0, 0.33, 1 and 1 of the others' median";
  EXPECT_DOUBLE_EQ(check.lost_ns, 0.5);
  EXPECT_DOUBLE_EQ(check.lost_share, 0.5 / 1.25);
  EXPECT_DOUBLE_EQ(check.usual_share, 0.5) << "0, 0, 1 and 1";
}

TEST(Stragglers, OfStepsWithoutTimeNothingIsAShare) {
  const StragglerCheck none = check_stragglers(Times{{0, 0}, {0, 0}});
  EXPECT_EQ(none.slowest_steps, 0u);
  EXPECT_EQ(none.chance, 1);
  EXPECT_EQ(none.lost_share, 0);
  EXPECT_EQ(none.usual_share, 0);
  EXPECT_EQ(none.slower, 0);
  const StragglerCheck some = check_stragglers(Times{{0, 1, 0}, {0, 1, 0}, {4, 3, 0}});
  EXPECT_EQ(some.slowest, 2u);
  EXPECT_DOUBLE_EQ(some.slower, 2) << "of the one step in which the others take time";
  EXPECT_DOUBLE_EQ(some.usual_share, 2);
  EXPECT_DOUBLE_EQ(some.lost_share, 6);
}

TEST(Stragglers, OfOneRankOrNoStepThereIsNoCheck) {
  const StragglerCheck one = check_stragglers(Times{{1, 2, 3}});
  EXPECT_EQ(one.ranks, 1u);
  EXPECT_EQ(one.steps, 0u);
  EXPECT_EQ(one.chance, 1);
  EXPECT_EQ(check_stragglers(Times{{}, {}}).ranks, 2u);
}

/// Two ranks, the second of which takes `longer` in the first of the steps, and less in the others.
Times slow_in(std::size_t slow_steps, std::size_t steps, double longer) {
  Times times = {std::vector<double>(steps, 100), std::vector<double>(steps, 90)};
  std::fill_n(times[1].begin(), slow_steps, longer);
  return times;
}

TEST(Stragglers, ArePersistentFromHalfwayBetweenChanceAndAlwaysOn) {
  const struct {
    std::size_t slow_steps, steps;
    double longer, chance;
    Straggler straggler;
  } cases[] = {
      {8, 8, 110, 2.0 / 256, Straggler::persistent},
      {7, 7, 110, 2.0 / 128, Straggler::none},
      {4, 4, 110, 2.0 / 16, Straggler::none},
      {3, 4, 110, 2.0 * 5 / 16, Straggler::none},
      {30, 40, 110, 0.002221, Straggler::persistent},
      {29, 40, 110, 0.006427, Straggler::none},
      {30, 40, 103, 0.002221, Straggler::persistent},
      {40, 40, 103, 0, Straggler::persistent},
      {40, 40, 101.5, 0, Straggler::none},
  };
  for (const auto& [slow_steps, steps, longer, chance, straggler] : cases) {
    const StragglerCheck check = check_stragglers(slow_in(slow_steps, steps, longer));
    EXPECT_EQ(check.straggler, straggler) << slow_steps << " of " << steps << ", " << longer;
    EXPECT_EQ(check.slowest_steps, slow_steps);
    EXPECT_NEAR(check.chance, chance, 1e-6);
  }
}

TEST(Stragglers, AreInTurnFromTenStepsAndALossOn) {
  // In the first `large` of so many steps the slowest of three takes 120, in the others less.
  const struct {
    std::size_t steps, large;
    double others;
    Straggler straggler;
  } cases[] = {
      {10, 10, 0, Straggler::rotating},
      {9, 9, 0, Straggler::none},
      {12, 0, 105, Straggler::rotating},
      {12, 0, 104, Straggler::none},
      {11, 5, 102, Straggler::rotating},
      {11, 5, 101.5, Straggler::none},
  };
  for (const auto& [steps, large, others, straggler] : cases) {
    Times times(3, std::vector<double>(steps, 100));
    for (std::size_t step = 0; step < steps; ++step)
      times[step % 3][step] = step < large ? 120 : others;
    const StragglerCheck check = check_stragglers(times, Times(3, std::vector<double>(steps, 130)));
    EXPECT_EQ(check.straggler, straggler) << steps << " steps, " << large << ", " << others;
    EXPECT_EQ(check.waited, straggler == Straggler::rotating);
  }
}

TEST(Stragglers, AreWaitedForUpToHalfOfWhatTheyAreSlowerBy) {
  const Times own = {std::vector<double>(20, 100), std::vector<double>(20, 150)};
  const auto waited = [&](double whole) {
    return check_stragglers(own,
                            Times{std::vector<double>(20, 256), std::vector<double>(20, whole)})
        .waited;
  };
  EXPECT_TRUE(waited(320)) << "a quarter and a half";
  EXPECT_FALSE(waited(321));
}

// --- Collectives --------------------------------------------------------------------------------

/// Of the rank that comes last most often; by rank, how long each collective took.
RankLateness most_often_last(const Times& times) {
  RankedJob job;
  job.times = times;
  if (!times.empty()) job.kinds.resize(times.front().size(), "AllReduce");
  const Lateness lateness = lateness_of(job);
  const auto most = std::ranges::max_element(lateness.ranks, {}, &RankLateness::times_last);
  return most == lateness.ranks.end() ? RankLateness() : *most;
}

// Ranks that are alike; who is slow in a step comes last to all twenty of its collectives.
TEST(Collectives, OfOneStepCountAsFewer) {
  std::mt19937_64 random(7);
  int certain = 0;
  for (int job = 0; job < 200; ++job) {
    Times times(4);
    for (int step = 0; step < 8; ++step) {
      std::vector<double> late;
      for (std::size_t rank = 0; rank < times.size(); ++rank)
        late.push_back(std::abs(std::normal_distribution<>(0, 0.03)(random)));
      for (int bucket = 0; bucket < 20; ++bucket) {
        for (std::size_t rank = 0; rank < times.size(); ++rank)
          times[rank].push_back(1 - late[rank]);
      }
    }
    certain += most_often_last(times).chance <= 0.01;
  }
  EXPECT_LE(certain, 6);
}

// Times in whole microseconds are often equal.
TEST(Collectives, TiesAreNobodys) {
  std::mt19937_64 random(7);
  Times times(8);
  for (int i = 0; i < 400; ++i) {
    for (std::vector<double>& rank : times)
      rank.push_back(std::floor(std::normal_distribution<>(12, 1)(random)));
  }
  EXPECT_GT(most_often_last(times).chance, 0.01);
}

TEST(Collectives, TellWhoComesLastAndForHowLongTheOthersWait) {
  // In three all take as long; in the fourth two are equally short, and it is nobody's.
  const RankLateness second = most_often_last(Times{{4, 4, 4, 10, 7, 5, 2, 2},  //
                                                    {4, 4, 4, 4, 7, 1, 1, 2},
                                                    {4, 4, 4, 4, 2, 5, 2, 3}});
  EXPECT_EQ(second.matched, 8u);
  EXPECT_EQ(second.times_last, 2u);
  EXPECT_EQ(second.late_ns, 4 + 1);
  EXPECT_EQ(second.most_ns, 4);
  EXPECT_EQ(second.chance, 1) << "2 of 8, of three ranks";
  EXPECT_DOUBLE_EQ(most_often_last(Times{{2, 2, 2, 2}, {1, 1, 1, 1}}).chance, 2.0 / 16);
}

TEST(Collectives, OfOneRankTellNothing) {
  EXPECT_EQ(most_often_last(Times{{1, 2, 3}}).matched, 0u);
  EXPECT_EQ(most_often_last(Times{}).matched, 0u);
  EXPECT_EQ(most_often_last(Times{{1, 2}, {2, 1}}).matched, 2u);
}

TEST(Collectives, HaveAShareOfARecordingThatHasALength) {
  RankedJob job;
  EXPECT_EQ(job.share(1), 0);
  job.length_ns = 4;
  EXPECT_EQ(job.share(1), 0.25);
}

}  // namespace
}  // namespace launchgap
