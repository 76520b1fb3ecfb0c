#include <limits>

#include <gmock/gmock.h>

#include "harness/core/plan.h"
#include "harness/summary/stragglers.h"
#include "tests/device/a_device.h"

namespace launchgap {
namespace {

using namespace testing;

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
  std::optional<std::int64_t> ranks{};
  std::string clock_problem{};
  StretchParts step_parts{};
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
    recording.record.ranks = own.ranks;
    recording.record.clock = own.clock;
    recording.record.clock_problem = own.clock_problem;
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
    job.record.step_parts = own.step_parts;
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

/// Stretches whose parts are all `kernels` and `program`.
StretchParts stretches(const std::vector<std::int64_t>& kernels,
                       const std::vector<std::int64_t>& program) {
  StretchParts parts;
  for (auto& part : parts.ns) part.resize(kernels.size());
  parts.ns[static_cast<std::size_t>(StretchPart::kernels)] = kernels;
  parts.ns[static_cast<std::size_t>(StretchPart::program)] = program;
  return parts;
}

TEST(RankedJobs, HaveThePartsOfTheStepsThatAllHave) {
  std::vector<OneRank> ranks = two_ranks();
  ranks[0].step_parts = stretches({1, 2, 3}, {4, 5, 6});
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).parts, IsEmpty()) << "one has none";
  ranks[1].step_parts = stretches({7, 8, 9}, {10, 11, 12});
  const RankedJob job = ranked_job(session_of_ranks(ranks));
  ASSERT_THAT(job.parts, Each(SizeIs(2)));
  const auto kernels = static_cast<std::size_t>(StretchPart::kernels);
  EXPECT_EQ(job.parts[0][0][kernels], 2);
  EXPECT_EQ(job.parts[1][1][kernels], 8);
  ranks[1].step_parts = stretches({7, 8}, {10, 11});
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).parts, IsEmpty()) << "of another number of steps";
}

TEST(RankedJobs, OfClocksThatDisagreeAreComparedByCollectivesAlone) {
  std::vector<OneRank> ranks = two_ranks();
  ranks[1].clock_problem = "the GPU's clock is ahead";
  EXPECT_THAT(names_of(ranks), SizeIs(2)) << "of which there are none";
  for (OneRank& own : ranks) own.collectives_ns = {1, 2, 3};
  EXPECT_THAT(names_of(ranks), IsEmpty());
}

TEST(RankedJobs, StandInTheOrderOfTheirRanks) {
  std::vector<OneRank> ranks = two_ranks();
  std::swap(ranks[0].rank, ranks[1].rank);
  EXPECT_THAT(names_of(ranks), ElementsAre("rank 0", "rank 1"));
  EXPECT_THAT(ranked_job(session_of_ranks(ranks)).times[0], ElementsAre(41, 51));
}

TEST(JobsByCollectives, HaveWhatWasBeforeEach) {
  std::vector<OneRank> ranks = two_that_talk();
  ranks[0].collectives[0].before = stretches({0, 3}, {0, 4});
  ranks[0].collectives[1].before = stretches({5}, {6});
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).parts, IsEmpty());
  ranks[1].collectives[0].before = stretches({5}, {60});
  ranks[1].collectives[1].before = stretches({0, 3}, {0, 4});
  const RankedJob job = job_by_collectives(session_of_ranks(ranks));
  EXPECT_THAT(job.kinds, ElementsAre("gather", "reduce", "reduce"));
  ASSERT_THAT(job.parts, Each(SizeIs(3)));
  const auto program = static_cast<std::size_t>(StretchPart::program);
  EXPECT_EQ(job.parts[0][0][program], 6);
  EXPECT_EQ(job.parts[1][0][program], 60);
  EXPECT_EQ(job.parts[1][2][program], 4);
}

// --- What forbids to compare them ---------------------------------------------------------------

TEST(RankDoubts, AreNoneOfARanksThatCanBeCompared) {
  const RankDoubts doubts = rank_doubts(session_of_ranks(two_that_talk()));
  EXPECT_THAT(doubts.names, ElementsAre("rank 0", "rank 1"));
  EXPECT_FALSE(doubts.twice || doubts.other_times || doubts.untied || doubts.nothing_common);
  EXPECT_EQ(doubts.missing_count, 0u);
  EXPECT_TRUE(job_by_collectives(session_of_ranks(two_that_talk())).all_recorded);
}

TEST(RankDoubts, AreNoneWhereNothingCouldBeCompared) {
  std::vector<OneRank> silent = two_that_talk();
  for (OneRank& own : silent) own.collectives.clear();
  EXPECT_FALSE(rank_doubts(session_of_ranks(silent)).nothing_common);
}

TEST(RankDoubts, AreNoneOfFilesThatNeedNotBeRanks) {
  std::vector<OneRank> ranks = two_ranks();
  for (OneRank& own : ranks) own.rank.reset();
  EXPECT_THAT(rank_doubts(session_of_ranks(ranks)).names, IsEmpty()) << "they talk to nobody";
  EXPECT_THAT(rank_doubts(session_of_ranks({two_that_talk()[0]})).names, IsEmpty()) << "one alone";
}

TEST(RankDoubts, NameARankThatSeveralSayToBe) {
  std::vector<OneRank> ranks = two_that_talk();
  ranks[0].rank = 1;
  EXPECT_EQ(rank_doubts(session_of_ranks(ranks)).twice, 1);
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, IsEmpty());
}

TEST(RankDoubts, SeeRecordingsOfOtherTimes) {
  std::vector<OneRank> ranks = two_that_talk();
  ranks[1].begin_ns = 999'999'999;
  EXPECT_FALSE(rank_doubts(session_of_ranks(ranks)).other_times) << "for 1 ns of a second";
  ranks[1].begin_ns = 1'000'000'000;
  EXPECT_TRUE(rank_doubts(session_of_ranks(ranks)).other_times);
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, IsEmpty());
  ranks[0].clock = "since the machine started";
  EXPECT_FALSE(rank_doubts(session_of_ranks(ranks)).other_times) << "of clocks that need not agree";
  EXPECT_THAT(job_by_collectives(session_of_ranks(ranks)).names, SizeIs(2));
}

TEST(RankDoubts, SeeThatNothingTiesProcessesTogether) {
  std::vector<OneRank> ranks = two_that_talk();
  for (OneRank& own : ranks) own.rank.reset();
  EXPECT_FALSE(rank_doubts(session_of_ranks(ranks)).untied) << "they ran at the same time";
  ranks[1].clock = "since the machine started";
  EXPECT_TRUE(rank_doubts(session_of_ranks(ranks)).untied);
}

TEST(RankDoubts, SeeThatRanksHaveNothingInCommon) {
  std::vector<OneRank> ranks = two_that_talk();
  ranks[1].collectives[1].ns.pop_back();
  RankDoubts doubts = rank_doubts(session_of_ranks(ranks));
  EXPECT_TRUE(doubts.nothing_common);
  EXPECT_THAT(doubts.collectives, ElementsAre(3, 2));
  EXPECT_THAT(doubts.steps, ElementsAre(0, 0));
  for (OneRank& own : ranks) own.steps = {1, 2};
  for (OneRank& own : ranks) own.step_ns = {1, 2};
  EXPECT_FALSE(rank_doubts(session_of_ranks(ranks)).nothing_common) << "steps will do";
}

TEST(RankDoubts, NameWhichRanksAreMissing) {
  std::vector<OneRank> ranks = two_that_talk();
  const auto missing = [&] { return rank_doubts(session_of_ranks(ranks)); };
  ranks[1].rank = 3;
  EXPECT_THAT(missing().missing, ElementsAre(1, 2));
  EXPECT_FALSE(job_by_collectives(session_of_ranks(ranks)).all_recorded);
  ranks[0].ranks = 6;
  EXPECT_THAT(missing().missing, ElementsAre(1, 2, 4));
  EXPECT_EQ(missing().missing_count, 4u);
  ranks[0].ranks = std::numeric_limits<std::int64_t>::max();
  ranks[1].rank = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(missing().missing, ElementsAre(1, 2, 3));
  EXPECT_EQ(missing().missing_count, (std::uint64_t{1} << 63) - 2);
  ranks[1].rank = -1;
  EXPECT_EQ(missing().missing_count, 0u) << "no rank can be";
}

}  // namespace
}  // namespace launchgap
