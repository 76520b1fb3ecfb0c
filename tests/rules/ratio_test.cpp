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

SessionProcesses medians(std::vector<double> values) {
  return {std::move(values), {}, {}, {}, {}, {}};
}

Verdict level(std::vector<double> now, double sign_of_worse = 1, double least = 0.03) {
  const auto found =
      judge_level(medians({100, 100.1, 99.9}), medians(std::move(now)), sign_of_worse, least);
  return found ? found->verdict : Verdict::watch;
}

TEST(TwoSessions, SuspectWhatIsWorseByTheLeastThatCounts) {
  EXPECT_EQ(level({103.2, 103.3, 103.1}), Verdict::suspect);
  EXPECT_EQ(level({103.2, 103.3, 103.1}, -1), Verdict::faster) << "of a rate";
  EXPECT_EQ(level({102.8, 102.9, 102.7}), Verdict::same);
  EXPECT_EQ(level({96.8, 96.9, 96.7}), Verdict::faster);
  EXPECT_EQ(level({97.3, 97.4, 97.2}), Verdict::same);
  EXPECT_EQ(level({104, 104}), Verdict::watch) << "two processes have no interval worth its name";
}

TEST(TwoSessions, CannotTellWhereTheIntervalSpansTheLeastThatCountsBothWays) {
  const auto wide = judge_level(medians({80, 100, 120}), medians({85, 100, 118}), 1, 0.03);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->verdict, Verdict::cannot_tell);
  EXPECT_EQ(wide->reason.find("some "), 0u) << wide->reason;
}

SessionProcesses spread(double cv, double tail) {
  return {{}, {cv, cv * 1.01, cv * 0.99}, {tail, tail * 1.01, tail * 0.99}, {}, cv, {}};
}

TEST(TwoSessions, AreErraticWhereTheyVaryMoreThanChanceAndTheLeastThatCounts) {
  const auto judged = [](const SessionProcesses& before, const SessionProcesses& now) {
    return judge_spread(before, now).steadiness;
  };
  EXPECT_EQ(judged(spread(0.02, 1), spread(0.0305, 1)), Steadiness::erratic);
  EXPECT_EQ(judged(spread(0.02, 1), spread(0.0295, 1)), Steadiness::same);
  EXPECT_EQ(judged(spread(0.0305, 1), spread(0.02, 1)), Steadiness::steadier);
  EXPECT_EQ(judged(spread(0.004, 1), spread(0.0099, 1)), Steadiness::same) << "both below 1 %";
  EXPECT_EQ(judged(spread(0.004, 1), spread(0.01, 1)), Steadiness::erratic);
  EXPECT_EQ(judged(spread(0.02, 1), spread(0.02, 1.26)), Steadiness::erratic);
  EXPECT_EQ(judged(spread(0.02, 1), spread(0.02, 1.24)), Steadiness::same);
}

TEST(TwoSessions, HaveALongerTailWhereItGrewMoreThanTheMedian) {
  const auto tail = [](double p99, double change) {
    return judge_tail({{}, {}, {}, {100, 101, 99}, {}, 100},
                      {{}, {}, {}, {p99, p99 * 1.01, p99 * 0.99}, {}, p99},
                      change);
  };
  EXPECT_EQ(tail(126, 0), 1.26);
  EXPECT_FALSE(tail(124, 0));
  EXPECT_FALSE(tail(126, 0.1)) << "the median grew too";
}

}  // namespace
}  // namespace launchgap::rules
