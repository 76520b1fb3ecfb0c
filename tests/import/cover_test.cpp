#include "harness/import/cover.h"

#include <gtest/gtest.h>

namespace launchgap::recording {
namespace {

Cover cover(std::initializer_list<std::pair<std::int64_t, std::int64_t>> intervals) {
  Cover result;
  for (const auto& [begin, end] : intervals) result.add(begin, end);
  result.build();
  return result;
}

TEST(Cover, CountsTimeOnceWhereIntervalsOverlap) {
  const Cover own =
      cover({{40, 50}, {10, 20}, {15, 30}, {12, 14}, {30, 35}});  // 10 to 35, 40 to 50
  const struct {
    std::int64_t from, to, covered;
  } cases[] = {
      {0, 100, 35},
      {0, 10, 0},
      {0, 11, 1},
      {35, 40, 0},
      {20, 45, 20},
      {12, 13, 1},
      {49, 1000, 1},
      {50, 1000, 0},
      {-1000, 0, 0},
      {30, 30, 0},
      {40, 20, 0},
  };
  for (const auto& [from, to, covered] : cases)
    EXPECT_EQ(own.within(from, to), covered) << from << " to " << to;
}

TEST(Cover, TakesNoIntervalThatEndsBeforeItBegins) {
  EXPECT_TRUE(cover({{20, 10}, {5, 5}}).empty());
  EXPECT_TRUE(cover({}).empty());
  EXPECT_EQ(cover({}).within(0, 100), 0);
}

TEST(Cover, HoldsAtTheLargestTimes) {
  constexpr std::int64_t kLate = 1'712'195'495'505'543'201;
  EXPECT_EQ(cover({{kLate, kLate + 3}, {kLate + 2, kLate + 5}}).within(kLate + 1, kLate + 100), 4);
}

}  // namespace
}  // namespace launchgap::recording
