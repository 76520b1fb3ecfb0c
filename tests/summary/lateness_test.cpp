#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>

#include "harness/summary/stragglers.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr auto at(StretchPart part) {
  return static_cast<std::size_t>(part);
}

/// Parts by rank and step, in ms, made into a job whose ranks wait for each other: each step, or
/// what is before each collective, is followed by a collective of `moving` and of the waits.
RankedJob job_of(std::vector<std::vector<PartTimes>> parts, bool by_steps, double moving = 10) {
  RankedJob job;
  const std::size_t ranks = parts.size(), units = parts.front().size();
  job.parts = std::move(parts);
  job.times.resize(ranks);
  if (by_steps) job.whole.resize(ranks);
  for (std::size_t i = 0; i < units; ++i) {
    std::vector<double> own;
    for (const auto& rank : job.parts) {
      double sum = 0;
      for (const double part : rank[i]) sum += part;
      own.push_back(sum);
    }
    const double whole = std::ranges::max(own) + moving;
    job.length_ns += whole;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      job.times[rank].push_back(by_steps ? own[rank] : whole - own[rank]);
      if (by_steps) job.whole[rank].push_back(whole);
    }
    if (!by_steps) job.kinds.push_back("ncclA");
  }
  return job;
}

/// Ranks that take 100 in each of so many units, of which no part is the same twice.
std::vector<std::vector<PartTimes>> alike(std::size_t ranks,
                                          std::size_t units,
                                          double scatter,
                                          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> normal;
  PartTimes usual{};
  usual[at(StretchPart::kernels)] = 60;
  for (const StretchPart part : {StretchPart::copies, StretchPart::input, StretchPart::waits})
    usual[at(part)] = 5;
  usual[at(StretchPart::program)] = 15;
  usual[at(StretchPart::launches)] = 10;
  std::vector<std::vector<PartTimes>> parts(ranks, std::vector<PartTimes>(units, usual));
  for (auto& rank : parts) {
    for (PartTimes& unit : rank) {
      for (double& part : unit) part *= std::exp(scatter * normal(random));
    }
  }
  return parts;
}

std::optional<StretchPart> reason_of(const RankLateness& rank) {
  return rank.reason ? rank.reason->part : std::nullopt;
}

TEST(LateRanks, HaveTheReasonThatWasPutIn) {
  for (const bool by_steps : {true, false}) {
    for (std::size_t ranks = 2; ranks <= 8; ++ranks) {
      for (const StretchPart part : {StretchPart::kernels,
                                     StretchPart::copies,
                                     StretchPart::input,
                                     StretchPart::program,
                                     StretchPart::launches,
                                     StretchPart::waits,
                                     StretchPart::allocations,
                                     StretchPart::calls}) {
        auto parts = alike(ranks, 20, 0.02, ranks);
        for (PartTimes& unit : parts[1]) unit[at(part)] += 15;
        const Lateness lateness = lateness_of(job_of(parts, by_steps));
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(lateness.ranks[rank].reason.has_value(), rank == 1) << name_of(part);
          EXPECT_EQ(reason_of(lateness.ranks[rank]),
                    rank == 1 ? std::optional(part) : std::nullopt);
        }
        EXPECT_LE(lateness.ranks[1].chance, 0.01);
        EXPECT_GT(lateness.ranks[1].reason->share, 0.8);
        ASSERT_TRUE(lateness.cost);
        EXPECT_NEAR(lateness.cost->took_ns - lateness.cost->without_ns[1], 20 * 14, 20 * 3);
      }
    }
  }
}

TEST(LateRanks, HaveNoReasonThatTellsNothing) {
  for (const StretchPart part : {StretchPart::queued, StretchPart::unknown}) {
    auto parts = alike(4, 20, 0.02, 1);
    for (PartTimes& unit : parts[1]) unit[at(part)] += 15;
    const Lateness lateness = lateness_of(job_of(parts, false));
    EXPECT_TRUE(lateness.ranks[1].late);
    EXPECT_FALSE(lateness.ranks[1].reason) << name_of(part);
    EXPECT_NEAR(lateness.ranks[1].longer[at(part)], 300, 1) << "but it is shown";
  }
}

TEST(LateRanks, AreLateByTheHostWhereSeveralOfItsPartsMakeHalf) {
  auto parts = alike(3, 20, 0.01, 1);
  for (PartTimes& unit : parts[1]) {
    for (const StretchPart part :
         {StretchPart::program, StretchPart::launches, StretchPart::allocations})
      unit[at(part)] += 5;
  }
  const RankLateness host = lateness_of(job_of(parts, true)).ranks[1];
  ASSERT_TRUE(host.reason);
  EXPECT_EQ(name_of(*host.reason), "host");
  EXPECT_GT(host.reason->share, 0.9);
  // Of three equal parts only one is the host's.
  parts = alike(3, 20, 0.01, 1);
  for (PartTimes& unit : parts[1]) {
    for (const StretchPart part : {StretchPart::kernels, StretchPart::copies, StretchPart::program})
      unit[at(part)] += 5;
  }
  const RankLateness mixed = lateness_of(job_of(parts, true)).ranks[1];
  EXPECT_TRUE(mixed.late);
  EXPECT_FALSE(mixed.reason);
}

TEST(LateRanks, AreNotBlamedForChance) {
  for (const double scatter : {0.02, 0.1}) {
    for (const bool by_steps : {true, false}) {
      int blamed = 0;
      for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        const Lateness lateness =
            lateness_of(job_of(alike(2 + seed % 7, 20, scatter, seed), by_steps));
        for (const RankLateness& rank : lateness.ranks) blamed += rank.reason ? 1 : 0;
      }
      EXPECT_LE(blamed, 10) << scatter << (by_steps ? ", steps" : ", collectives");
    }
  }
}

TEST(LateRanks, ThatAreLateInTurnHaveAReasonTogether) {
  auto parts = alike(4, 40, 0.02, 1);
  for (std::size_t i = 0; i < 40; ++i) parts[i % 4][i][at(StretchPart::input)] += 30;
  const Lateness lateness = lateness_of(job_of(parts, true));
  EXPECT_THAT(lateness.ranks, Each(Field(&RankLateness::late, false)));
  EXPECT_EQ(reason_of(lateness.all), StretchPart::input);
}

/// By hand: two ranks, the second of which comes late to the second and third collective.
RankedJob by_hand() {
  RankedJob job;
  job.times = {{10, 40, 30, 9}, {20, 10, 10, 9}};
  job.kinds = {"a", "a", "b", "b"};
  job.length_ns = 100;
  PartTimes none{}, kernels{}, both{};
  kernels[at(StretchPart::kernels)] = 5;
  both[at(StretchPart::kernels)] = 5;
  both[at(StretchPart::copies)] = 25;
  job.parts = {{none, kernels, kernels, kernels}, {none, both, both, kernels}};
  return job;
}

TEST(LateRanks, HaveTheirFigures) {
  const Lateness lateness = lateness_of(by_hand());
  const RankLateness &first = lateness.ranks[0], &second = lateness.ranks[1];
  EXPECT_EQ(second.matched, 4u);
  EXPECT_EQ(first.times_last, 1u);
  EXPECT_EQ(second.times_last, 2u) << "to the fourth both come at once";
  EXPECT_EQ(first.late_ns, 10);
  EXPECT_EQ(first.explained, 0u) << "before the first nothing tells when they began";
  EXPECT_EQ(second.late_ns, 30 + 20);
  EXPECT_EQ(second.most_ns, 30);
  EXPECT_EQ(second.explained, 2u);
  EXPECT_EQ(second.longer_ns, 50);
  EXPECT_EQ(second.longer[at(StretchPart::copies)], 50);
  EXPECT_EQ(first.waiting_ns, 50);
  EXPECT_EQ(second.waiting_ns, 10);
  EXPECT_EQ(lateness.moving_ns, 10 + 10 + 10 + 9);
  EXPECT_EQ(second.chance, 1);
  EXPECT_TRUE(second.late) << "five times as late as the other";
  EXPECT_EQ(reason_of(second), StretchPart::copies);
  ASSERT_TRUE(lateness.cost);
  EXPECT_EQ(lateness.cost->took_ns, 30 + 10 + 30 + 10 + 5 + 9);
  EXPECT_EQ(lateness.cost->ideal_ns, 17.5 + 10 + 17.5 + 10 + 5 + 9);
  EXPECT_EQ(lateness.cost->without_ns[1], 5 + 10 + 5 + 10 + 5 + 9);
  EXPECT_EQ(lateness.cost->without_ns[0], lateness.cost->took_ns);
}

TEST(LateRanks, HaveThemOfOneKindToo) {
  const Lateness lateness = lateness_of(by_hand(), "b");
  EXPECT_EQ(lateness.ranks[1].matched, 2u);
  EXPECT_EQ(lateness.ranks[1].late_ns, 20);
  EXPECT_EQ(lateness.moving_ns, 19);
  EXPECT_THAT(lateness_of(by_hand(), "c").ranks, IsEmpty());
}

TEST(LateRanks, AreLateFromAFiftiethOfTheTimeOn) {
  RankedJob job = by_hand();
  job.length_ns = 2500;
  EXPECT_TRUE(lateness_of(job).ranks[1].late);
  job.length_ns = 2501;
  EXPECT_FALSE(lateness_of(job).ranks[1].late);
}

TEST(LateRanks, AreLateIfTheyAreFourTimesAsLateAsAnyOtherWhereItMayBeChance) {
  RankedJob job = by_hand();
  job.times[1][0] = 22.5;
  EXPECT_TRUE(lateness_of(job).ranks[1].late) << "50 beside 12.5";
  job.times[1][0] = 22.6;
  EXPECT_FALSE(lateness_of(job).ranks[1].late);
  EXPECT_FALSE(lateness_of(job).ranks[1].reason);
}

TEST(LateRanks, HaveNoReasonWhereTheirOwnTimeDoesNotExplainTheWaits) {
  RankedJob job = by_hand();
  for (const std::size_t i : {1u, 2u}) job.times[0][i] += 30;
  EXPECT_TRUE(lateness_of(job).ranks[1].late);
  EXPECT_FALSE(lateness_of(job).ranks[1].reason) << "50 of 110";
  job = by_hand();
  job.times[0][0] = 90;  // to the first comes the second last, and by 70
  EXPECT_FALSE(lateness_of(job).ranks[1].reason) << "of most of it nothing tells";
}

TEST(LateRanks, CostNothingThatIsKnownWhereSomeAreMissing) {
  RankedJob job = by_hand();
  job.all_recorded = false;
  EXPECT_FALSE(lateness_of(job).cost);
  EXPECT_EQ(lateness_of(job).ranks[1].late_ns, 50);
}

TEST(LateRanks, CostNothingWhereNobodyWaits) {
  auto parts = alike(4, 20, 0.02, 1);
  for (PartTimes& unit : parts[1]) unit[at(StretchPart::kernels)] += 30;
  RankedJob job = job_of(parts, true);
  EXPECT_TRUE(lateness_of(job).cost);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < 20; ++i) job.whole[rank][i] = job.times[rank][i] + 10;
  }
  EXPECT_FALSE(lateness_of(job).cost) << "each goes on when it is done";
  job.whole.clear();
  EXPECT_FALSE(lateness_of(job).cost) << "nothing tells of collectives";
  EXPECT_EQ(reason_of(lateness_of(job).ranks[1]), StretchPart::kernels)
      << "it is slow all the same";
}

TEST(LateRanks, NeedRanksAndWhatTheyHaveInCommon) {
  EXPECT_THAT(lateness_of(RankedJob()).ranks, IsEmpty());
  RankedJob job;
  job.times = {{1, 2}};
  EXPECT_THAT(lateness_of(job).ranks, IsEmpty());
  job.times = {{}, {}};
  EXPECT_THAT(lateness_of(job).ranks, IsEmpty());
}

TEST(LateRanks, WithoutPartsHaveNoReasonAndNoCost) {
  RankedJob job = by_hand();
  job.parts.clear();
  const Lateness lateness = lateness_of(job);
  EXPECT_TRUE(lateness.ranks[1].late);
  EXPECT_EQ(lateness.ranks[1].explained, 0u);
  EXPECT_FALSE(lateness.ranks[1].reason || lateness.cost);
}

}  // namespace
}  // namespace launchgap
