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

TEST(RecordingCosts, AreMediansOfTheDifferencesOfARound) {
  // Rounds drift, and one has a hiccup: neither is the recorder's.
  const auto plain = starts({1, 2, 3, 4, 5, 6, 7}, {100, 200, 300, 400, 500, 600, 700});
  const auto recorded =
      starts({1.1, 2.1, 3.1, 4.1, 5.1, 6.1, 99}, {103, 203, 303, 403, 503, 603, 900});
  const RecordingCost cost = cost_of("all", plain, recorded, 10'000);
  EXPECT_EQ(cost.level, "all");
  EXPECT_EQ(cost.rounds, 7);
  EXPECT_DOUBLE_EQ(cost.plain_wall_s, 4);
  EXPECT_NEAR(cost.wall_s, 0.1, 1e-9);
  EXPECT_EQ(cost.launches, 10'000);
  ASSERT_TRUE(cost.launch_ns && cost.launch_low_ns && cost.launch_high_ns);
  EXPECT_NEAR(*cost.launch_ns, 300, 1e-9);
  EXPECT_NEAR(*cost.launch_low_ns, 300, 1e-9);
  EXPECT_NEAR(*cost.launch_high_ns, 20'000, 1e-9);
}

TEST(RecordingCosts, HaveNoIntervalBelowSixRounds) {
  const auto plain = starts({1, 1, 1, 1, 1}, {10, 10, 10, 10, 10});
  const RecordingCost cost = cost_of("kernels", plain, plain, 10);
  EXPECT_EQ(cost.launch_ns, 0);
  EXPECT_FALSE(cost.launch_low_ns || cost.wall_low_s);
}

TEST(RecordingCosts, OfACallAreNotKnownWhereAProcessDidNotTellItsEnd) {
  const auto plain = starts({1, 1}, {10, 10});
  auto recorded = plain;
  recorded[1].ran_ns = std::nullopt;
  EXPECT_FALSE(cost_of("all", plain, recorded, 10).launch_ns);
  EXPECT_EQ(cost_of("all", plain, recorded, 10).wall_s, 0);
  EXPECT_FALSE(cost_of("all", plain, plain, 0).launch_ns) << "it has no launches";
}

}  // namespace
}  // namespace launchgap::recording
