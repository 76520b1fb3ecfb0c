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
  const std::int64_t begin = now_ns();
  // 100 parts per million fast, whenever this process gets to read it.
  const auto at = [&](std::int64_t host_ns) {
    return host_ns + kOffset + (host_ns - begin) / 10'000;
  };
  TraceClock clock([&] { return at(now_ns()); });
  clock.bracket();
  while (now_ns() - begin < 5'000'000) {
  }
  const std::int64_t middle = now_ns();
  while (now_ns() - middle < middle - begin) {
  }
  clock.bracket();
  EXPECT_LE(std::abs(clock.trace_time(middle) - at(middle)), clock.uncertainty_ns() + 2);
  EXPECT_GE(at(middle) - middle - kOffset, 500);
  EXPECT_EQ(clock.step_ns(), 0);
  EXPECT_NEAR(clock.drift_ppm().value(), 100, 50);
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

TEST(TraceClock, DriftBeyondItsLimitIsAJump) {
  for (const std::int64_t ppm : {180, 500}) {
    const std::int64_t begin = now_ns();
    TraceClock clock([&] {
      const std::int64_t now = now_ns();
      return now + kOffset + (now - begin) * ppm / 1'000'000;
    });
    clock.bracket();
    while (now_ns() - begin < 150'000'000) {
    }
    clock.bracket();
    EXPECT_EQ(clock.step_ns() != 0, ppm > 200) << ppm;
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
