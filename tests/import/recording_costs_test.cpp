#include "harness/import/recording_costs.h"

#include <vector>

#include <gtest/gtest.h>

namespace launchgap::recording {
namespace {

std::vector<TimedStart> starts(const std::vector<double>& wall_s,
                               const std::vector<double>& ran_ms) {
  std::vector<TimedStart> all;
  for (std::size_t i = 0; i < wall_s.size(); ++i) all.push_back({wall_s[i], ran_ms[i] * 1e6});
  return all;
}

RecordedCalls some_calls(std::uint64_t count) {
  return {count, 1000, 1000};
}

TEST(RecordingCosts, AreMediansOfTheDifferencesOfARound) {
  // Rounds drift, and one has a hiccup: neither is the recorder's.
  const auto plain = starts({1, 2, 3, 4, 5, 6, 7}, {100, 200, 300, 400, 500, 600, 700});
  const auto recorded =
      starts({1.1, 2.1, 3.1, 4.1, 5.1, 6.1, 99}, {103, 203, 303, 403, 503, 603, 900});
  const RecordingCost cost = cost_of("all", plain, recorded, some_calls(10'000));
  EXPECT_EQ(cost.level, "all");
  EXPECT_EQ(cost.rounds, 7);
  EXPECT_DOUBLE_EQ(cost.plain_wall_s, 4);
  EXPECT_NEAR(cost.wall_s, 0.1, 1e-9);
  EXPECT_EQ(cost.calls, 10'000);
  ASSERT_TRUE(cost.call_ns && cost.call_low_ns && cost.call_high_ns);
  EXPECT_NEAR(*cost.call_ns, 300, 1e-9);
  EXPECT_NEAR(*cost.call_low_ns, 300, 1e-9);
  EXPECT_NEAR(*cost.call_high_ns, 20'000, 1e-9);
}

TEST(RecordingCosts, HaveNoIntervalBelowSixRounds) {
  const auto plain = starts({1, 1, 1, 1, 1}, {10, 10, 10, 10, 10});
  const RecordingCost cost = cost_of("kernels", plain, plain, some_calls(10));
  EXPECT_EQ(cost.call_ns, 0);
  EXPECT_FALSE(cost.call_low_ns || cost.wall_low_s);
}

TEST(RecordingCosts, OfACallAreNotKnownWhereAProcessDidNotTellItsEnd) {
  const auto plain = starts({1, 1}, {10, 10});
  auto recorded = plain;
  recorded[1].ran_ns = std::nullopt;
  EXPECT_FALSE(cost_of("all", plain, recorded, some_calls(10)).call_ns);
  EXPECT_EQ(cost_of("all", plain, recorded, some_calls(10)).wall_s, 0);
  EXPECT_FALSE(cost_of("all", plain, plain, {}).call_ns) << "it has no calls";
}

TEST(RecordingCosts, OfACallAreNotToldWhereThreadsCallAtOnce) {
  const auto call = [](std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t thread) {
    activity::Call made;
    made.begin_ns = begin_ns;
    made.end_ns = end_ns;
    made.thread = thread;
    return made;
  };
  Process in_turns;
  in_turns.threads = {"1", "2"};
  in_turns.trace.calls = {
      call(100, 200, 0), call(120, 180, 0), call(300, 400, 1), call(500, 600, 0)};
  RecordedCalls calls;
  calls.add(in_turns);
  EXPECT_EQ(calls.count, 3) << "one is part of another";
  EXPECT_FALSE(calls.overlap());
  Process at_once = in_turns;
  at_once.trace.calls[2].begin_ns = 110;
  at_once.trace.calls[2].end_ns = 190;
  RecordedCalls overlapping;
  overlapping.add(at_once);
  EXPECT_TRUE(overlapping.overlap());
  const auto plain = starts({1, 1}, {10, 10});
  EXPECT_TRUE(cost_of("all", plain, plain, calls).call_ns);
  EXPECT_FALSE(cost_of("all", plain, plain, overlapping).call_ns);
}

}  // namespace
}  // namespace launchgap::recording
