#include "harness/summary/stragglers.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "harness/core/plan.h"
#include "harness/summary/ranked_job.h"
#include "tests/device/a_device.h"

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

TEST(Collectives, TellWhoComesLastAndForHowLongTheOthersWait) {
  // In three all take as long; in the fourth two are equally short, and the first is said.
  const CollectiveCheck check = check_collectives(Times{{4, 4, 4, 10, 7, 5, 2, 2},  //
                                                        {4, 4, 4, 4, 7, 1, 1, 2},
                                                        {4, 4, 4, 4, 2, 5, 2, 3}});
  EXPECT_EQ(check.collectives, 8u);
  EXPECT_EQ(check.last, 1u);
  EXPECT_EQ(check.last_times, 3u);
  EXPECT_EQ(check.waited_ns, 6 + 4 + 1);
  EXPECT_EQ(check.most_ns, 6);
  EXPECT_EQ(check.chance, 1) << "3 of 8, of three ranks";
  EXPECT_DOUBLE_EQ(check_collectives(Times{{2, 2, 2, 2}, {1, 1, 1, 1}}).chance, 2.0 / 16);
}

TEST(Collectives, OfOneRankTellNothing) {
  EXPECT_EQ(check_collectives(Times{{1, 2, 3}}).collectives, 0u);
  EXPECT_EQ(check_collectives(Times{}).collectives, 0u);
  EXPECT_EQ(check_collectives(Times{{1, 2}, {2, 1}}).collectives, 2u);
}

TEST(Collectives, HaveAShareOfARecordingThatHasALength) {
  CollectiveCheck check;
  check.waited_ns = 1;
  EXPECT_EQ(check.length_share(4), 0.25);
  EXPECT_EQ(check.length_share(1), 1);
  EXPECT_EQ(check.length_share(0), 0);
}

// --- Which processes are the ranks of a job -----------------------------------------------------

/// A recorded process of a second, of a session that is put together here.
struct OneRank {
  std::string device = "GPU-1";
  int replicate = 0;
  std::string file = "a.json";
  std::optional<std::uint64_t> pid{};
  std::optional<std::int64_t> rank{};
  std::int64_t begin_ns = 0;
  std::optional<double> duration_s = 1;
  std::string clock = "Unix time";
  std::vector<std::uint64_t> steps{};
  std::vector<double> step_ns{}, collectives_ns{};
  std::vector<CollectiveRecord> collectives{};
  std::optional<std::int64_t> extent_ns{};
};

SessionData session_of_ranks(const std::vector<OneRank>& ranks) {
  SessionData session;
  for (const OneRank& own : ranks) {
    if (!session.device(own.device)) session.devices.push_back(a_device(own.device, "Some GPU"));
    RecordingInfo& recording = session.recordings.emplace_back();
    recording.device = own.device;
    recording.replicate = own.replicate;
    recording.record.file = own.file;
    recording.record.pid = own.pid;
    recording.record.rank = own.rank;
    recording.record.clock = own.clock;
    RunInfo& run = session.runs.emplace_back();
    run.device = own.device;
    run.replicate = own.replicate;
    run.arm = kRecorded;
    run.begin_ns = own.begin_ns;
    run.duration_s = own.duration_s;
    JobInfo& job = session.jobs.emplace_back();
    job.device = own.device;
    job.replicate = own.replicate;
    job.record.steps = own.steps;
    job.record.collectives = own.collectives;
    job.record.extent_ns = own.extent_ns;
    const auto of_case = [&](const char* arm, const char* name) -> CaseData& {
      return session.cases[{own.device, arm, ProcessConfig(arm), CaseName::parse(name)}];
    };
    of_case("recorded", "recorded/launch/stream:idle");
    of_case("plain", "recorded/step").samples["step_ns"][own.replicate] = {1, 2, 3};
    CaseData& data = of_case("recorded", "recorded/step");
    if (!own.step_ns.empty()) data.samples["step_ns"][own.replicate] = own.step_ns;
    if (!own.collectives_ns.empty())
      data.samples["collectives_ns"][own.replicate] = own.collectives_ns;
  }
  return session;
}

/// Two processes with ranks, on one GPU each, that have the steps 4 and 5 in common.
std::vector<OneRank> two_ranks() {
  OneRank first = {.file = "a.json", .rank = 0, .steps = {3, 4, 5}, .step_ns = {30, 40, 50}};
  OneRank second = {
      .device = "GPU-2", .file = "b.json", .rank = 1, .steps = {4, 5, 6}, .step_ns = {41, 51, 61}};
  return {first, second};
}

std::vector<std::string> names_of(const std::vector<OneRank>& ranks) {
  return ranked_job(session_of_ranks(ranks)).names;
}

TEST(RankedJobs, HaveTheStepsThatAllHave) {
  std::vector<OneRank> ranks = two_ranks();
  const SessionData session = session_of_ranks(ranks);
  const RankedJob job = ranked_job(session);
  EXPECT_THAT(job.names, ElementsAre("rank 0", "rank 1"));
  EXPECT_THAT(job.ranks, ElementsAre(&session.jobs[0], &session.jobs[1]));
  EXPECT_THAT(job.times, ElementsAre(ElementsAre(40, 50), ElementsAre(41, 51)));
  EXPECT_THAT(job.whole, IsEmpty());
  ranks[1].steps[0] = 7;
  EXPECT_THAT(names_of(ranks), IsEmpty()) << "one step in common";
}

TEST(RankedJobs, AStepThatOneHasTwiceIsNone) {
  std::vector<OneRank> ranks = two_ranks();
  for (OneRank& own : ranks) {
    own.steps = {4, 5, 5, 6};
    own.step_ns = {1, 2, 3, 4};
  }
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).times, Each(ElementsAre(1, 4)));
}

TEST(RankedJobs, LeaveOutCollectivesWhereAllRanksHaveThem) {
  std::vector<OneRank> ranks = two_ranks();
  ranks[0].collectives_ns = {1, 2, 3};
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).times[0], ElementsAre(40, 50));
  ranks[1].collectives_ns = {1, 2, 4};
  const RankedJob job = ranked_job(session_of_ranks(ranks));
  EXPECT_THAT(job.times, ElementsAre(ElementsAre(38, 47), ElementsAre(40, 49)));
  EXPECT_THAT(job.whole, ElementsAre(ElementsAre(40, 50), ElementsAre(41, 51)));
  ranks[1].collectives_ns = {1, 2};
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).whole, IsEmpty()) << "of another number of steps";
}

TEST(RankedJobs, NeedATimeOfEachStep) {
  for (const std::vector<double>& step_ns : {std::vector<double>{}, std::vector<double>{41, 51}}) {
    std::vector<OneRank> ranks = two_ranks();
    ranks[1].step_ns = step_ns;
    EXPECT_THAT(names_of(ranks), IsEmpty());
  }
}

TEST(RankedJobs, HaveARankEachOrAreOfOneFile) {
  std::vector<OneRank> ranks = two_ranks();
  for (OneRank& own : ranks) own.clock = "unknown";
  EXPECT_THAT(names_of(ranks), SizeIs(2));
  ranks[1].rank = 0;
  EXPECT_THAT(names_of(ranks), IsEmpty()) << "of one rank";
  ranks[1].rank.reset();
  EXPECT_THAT(names_of(ranks), IsEmpty());
  ranks[0].rank.reset();
  ranks[1].file = ranks[0].file;
  ranks[0].pid = 7;
  ranks[1].pid = 8;
  EXPECT_THAT(names_of(ranks), ElementsAre("process 7", "process 8"));
  ranks[1].pid = 7;
  EXPECT_THAT(names_of(ranks), IsEmpty()) << "one process on two GPUs";
}

TEST(RankedJobs, OfOneGpuAreToldApartByTheirRuns) {
  std::vector<OneRank> ranks = two_ranks();
  ranks[1].device = "GPU-1";
  ranks[1].replicate = 1;
  const SessionData session = session_of_ranks(ranks);
  const RankedJob job = ranked_job(session);
  EXPECT_THAT(job.names, ElementsAre("rank 0", "rank 1"));
  EXPECT_THAT(job.times, ElementsAre(ElementsAre(40, 50), ElementsAre(41, 51)));
}

TEST(RankedJobs, NeedARecordingAndARunOfEach) {
  SessionData session = session_of_ranks(two_ranks());
  session.runs[1].arm = "plain";
  EXPECT_THAT(ranked_job(session).names, IsEmpty());
  session = session_of_ranks(two_ranks());
  session.recordings.pop_back();
  EXPECT_THAT(ranked_job(session).names, IsEmpty());
}

TEST(RankedJobs, RanAtTheSameTimeForHalfOfTheShortest) {
  // From 1 s on for 8 s, beside what lasts 2 s.
  const struct {
    double begins_s;
    bool tied;
  } cases[] = {{0, true}, {-1, false}, {-0.25, false}, {4, true}, {8, true}, {8.25, false}};
  for (const auto& [begins_s, tied] : cases) {
    for (const bool swapped : {false, true}) {
      std::vector<OneRank> ranks = two_ranks();
      for (OneRank& own : ranks) own.rank.reset();
      OneRank &lasting = ranks[swapped ? 1 : 0], &brief = ranks[swapped ? 0 : 1];
      lasting.begin_ns = 1'000'000'000;
      lasting.duration_s = 8;
      brief.begin_ns = static_cast<std::int64_t>(begins_s * 1e9);
      brief.duration_s = 2;
      EXPECT_THAT(names_of(ranks), SizeIs(tied ? 2 : 0)) << begins_s;
    }
  }
  std::vector<OneRank> ranks = two_ranks();
  for (OneRank& own : ranks) own.rank.reset();
  EXPECT_THAT(names_of(ranks), ElementsAre("a.json", "b.json"));
  ranks[1].clock = "unknown";
  EXPECT_THAT(names_of(ranks), IsEmpty());
  ranks[1].clock = "Unix time";
  ranks[1].duration_s.reset();
  EXPECT_THAT(names_of(ranks), IsEmpty());
}

/// Two ranks without steps, each with collectives.
std::vector<OneRank> two_that_talk() {
  std::vector<OneRank> ranks = two_ranks();
  for (OneRank& own : ranks) {
    own.steps = {};
    own.step_ns = {};
  }
  ranks[0].collectives = {{"reduce", {5, 6}}, {"gather", {7}}};
  ranks[1].collectives = {{"gather", {8}}, {"reduce", {9, 10}}};
  ranks[0].extent_ns = 100;
  ranks[1].extent_ns = 90;
  return ranks;
}

TEST(JobsByCollectives, HaveThoseOfOneNameSideBySide) {
  const SessionData session = session_of_ranks(two_that_talk());
  const RankedJob job = job_by_collectives(session);
  EXPECT_THAT(job.names, ElementsAre("rank 0", "rank 1"));
  EXPECT_THAT(job.ranks, ElementsAre(&session.jobs[0], &session.jobs[1]));
  EXPECT_THAT(job.times, ElementsAre(ElementsAre(7, 5, 6), ElementsAre(8, 9, 10)));
  EXPECT_EQ(job.length_ns, 100);
  EXPECT_THAT(ranked_job(session).names, IsEmpty());
}

TEST(JobsByCollectives, LastNoTimeThatIsNotKnown) {
  std::vector<OneRank> ranks = two_that_talk();
  for (OneRank& own : ranks) own.extent_ns.reset();
  EXPECT_EQ(job_by_collectives(session_of_ranks(ranks)).length_ns, 0);
}

TEST(JobsByCollectives, NeedTheSameOfEachRank) {
  for (const std::vector<CollectiveRecord>& other :
       std::vector<std::vector<CollectiveRecord>>{{{"gather", {8}}},
                                                  {{"gather", {8}}, {"reduce", {9}}},
                                                  {{"gather", {8}}, {"scatter", {9, 10}}},
                                                  {}}) {
    std::vector<OneRank> ranks = two_that_talk();
    ranks[1].collectives = other;
    EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, IsEmpty());
  }
}

TEST(JobsByCollectives, AreTiedByRanksOrOneFileOrTime) {
  std::vector<OneRank> ranks = two_that_talk();
  for (OneRank& own : ranks) own.clock = "unknown";
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, SizeIs(2));
  for (OneRank& own : ranks) own.rank.reset();
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, IsEmpty());
  for (OneRank& own : ranks) own.clock = "Unix time";
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, SizeIs(2));
  ranks[0].clock = "unknown";
  ranks[0].pid = 1;
  ranks[1].file = ranks[0].file;
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, SizeIs(2));
}

}  // namespace
}  // namespace launchgap
