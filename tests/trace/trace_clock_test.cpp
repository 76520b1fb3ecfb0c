#include "harness/trace/trace_clock.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "harness/core/clock.h"

namespace launchgap {
namespace {

constexpr std::int64_t kOffset = 1'700'000'000'000'000'000;

TEST(TraceClock, MapsHostTimesByTheOffset) {
  TraceClock clock([] { return now_ns() + kOffset; });
  clock.bracket();
  const std::int64_t now = now_ns();
  clock.bracket();
  EXPECT_LE(std::abs(clock.trace_time(now) - (now + kOffset)), clock.uncertainty_ns() + 1);
  EXPECT_EQ(clock.step_ns(), 0);
}

TEST(TraceClock, InterpolatesAClockThatDrifts) {
  // 100 parts per million fast, as if the bracket had been taken a second ago.
  std::int64_t extra = 0;
  TraceClock clock([&] { return now_ns() + kOffset + extra; });
  clock.bracket();
  const std::int64_t begin = now_ns();
  while (now_ns() - begin < 5'000'000) {
  }
  const std::int64_t middle = now_ns();
  while (now_ns() - middle < middle - begin) {
  }
  extra = 1000;
  const std::int64_t end = now_ns();
  clock.bracket();
  // The system may take the CPU away at any of these lines.
  const double share = static_cast<double>(middle - begin) / static_cast<double>(end - begin);
  EXPECT_NEAR(static_cast<double>(clock.trace_time(middle) - middle - kOffset),
              1000 * share,
              60 + static_cast<double>(2 * clock.uncertainty_ns()));
  EXPECT_EQ(clock.step_ns(), 0);
  EXPECT_GT(clock.drift_ppm().value(), 50);
}

TEST(TraceClock, NoticesAJumpInEitherDirection) {
  for (const std::int64_t jump : {20'000, -20'000}) {
    std::int64_t extra = 0;
    TraceClock clock([&] { return now_ns() + kOffset + extra; });
    clock.bracket();
    extra = jump;
    clock.bracket();
    EXPECT_NEAR(static_cast<double>(clock.step_ns()), static_cast<double>(jump), 1000);
    clock.bracket();
    EXPECT_NE(clock.step_ns(), 0) << "a jump is not forgotten";
  }
}

TEST(TraceClock, SmallChangesAreDrift) {
  std::int64_t extra = 0;
  TraceClock clock([&] { return now_ns() + kOffset + extra; });
  clock.bracket();
  extra = 5000;
  clock.bracket();
  EXPECT_EQ(clock.step_ns(), 0);
}

}  // namespace
}  // namespace launchgap
