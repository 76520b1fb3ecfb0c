#include "harness/measure/warm_up.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "harness/device/backend.h"

namespace launchgap {
namespace {

using Round = SteadyStart::Round;

/// After how many rounds the rule is content, or 0: not within 100.
int steady_after(const std::function<Round(int)>& round) {
  SteadyStart start;
  for (int i = 0; i < 100; ++i) {
    start.add(round(i));
    if (start.steady()) return i + 1;
  }
  return 0;
}

TEST(SteadyStart, TakesTenRoundsWhereNothingMoves) {
  EXPECT_EQ(steady_after([](int) { return Round{2000, 8000, 1980}; }), 10);
  EXPECT_EQ(steady_after([](int) { return Round{2000, 8000, std::nullopt}; }), 10);
}

TEST(SteadyStart, WaitsForTheEndOfARise) {
  struct Rise {
    int rounds;
    double factor;
  };
  for (const Rise& rise : {Rise{5, 5.7}, Rise{20, 1.5}, Rise{50, 1.5}, Rise{50, 3}}) {
    const auto times = [&](int i) {
      return 1 + (rise.factor - 1) * std::max(0.0, 1.0 - 1.0 * i / rise.rounds);
    };
    // Of the call alone, of the round trip alone, and of the clock alone.
    EXPECT_GE(steady_after([&](int i) { return Round{2000 * times(i), 8000, 1980}; }), rise.rounds);
    EXPECT_GE(steady_after([&](int i) { return Round{2000, 8000 * times(i), 1980}; }), rise.rounds);
    EXPECT_GE(steady_after([&](int i) { return Round{2000, 8000, 1980 / times(i)}; }), rise.rounds);
  }
}

TEST(SteadyStart, IsNotHeldUpByTicksOfTheClockOrByOneSlowRound) {
  EXPECT_EQ(steady_after([](int i) {
              return Round{45.0 + i % 3, 110.0 + i % 4, std::nullopt};
            }),
            10);
  const int after = steady_after([](int i) { return Round{i == 8 ? 4000.0 : 2000.0, 8000, 1980}; });
  EXPECT_GE(after, 14);
  EXPECT_LE(after, 19);
}

TEST(SteadyStart, IsNeverContentWithWhatKeepsMoving) {
  EXPECT_EQ(steady_after([](int i) { return Round{2000, i % 2 ? 8000.0 : 9000.0, 1980}; }), 0);
  EXPECT_EQ(steady_after([](int i) { return Round{2000, 8000, i % 2 ? 1980.0 : 1800.0}; }), 0);
  EXPECT_EQ(steady_after([](int i) { return Round{2000 * std::pow(1.003, i), 8000, 1980}; }), 0);
}

/// A device whose times are `factor` times those of a warm one, and whose rounds take
/// what was asked for.
struct FakeDevice {
  double factor = 1;

  WarmUp::LaunchFor launch_for() {
    return [this](std::int64_t nanoseconds) {
      Round round{2000 * factor, 8000 * factor, std::nullopt};
      round.seconds = static_cast<double>(nanoseconds) * 1e-9;
      return round;
    };
  }
};

TEST(WarmUp, LooksAsOftenAsThereAreCasesAndStillWarmsUp) {
  FakeDevice device;
  WarmUp warm_up(device.launch_for());
  warm_up.warm_up();
  ASSERT_TRUE(warm_up.result().steady);
  EXPECT_EQ(warm_up.result().rounds, 10u);
  // A full plan: no look takes from the time for rounds.
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(warm_up.keep());
  EXPECT_EQ(warm_up.result().rounds, 10u);
  EXPECT_DOUBLE_EQ(warm_up.result().seconds, 0.2);
  device.factor = 1.2;  // a lower clock, and for good
  EXPECT_TRUE(warm_up.keep());
  EXPECT_EQ(warm_up.result().rounds, 20u);
  EXPECT_EQ(warm_up.result().again, 1u);
  // What it is compared with from now on is what it became.
  EXPECT_TRUE(warm_up.keep());
  EXPECT_EQ(warm_up.result().again, 1u);
}

TEST(WarmUp, SaysOfEachCaseThatTheDeviceDidNotBecomeSteadyAgain) {
  FakeDevice device;
  WarmUp warm_up(device.launch_for());
  warm_up.warm_up();
  const auto steady_device = warm_up.result().last;
  std::int64_t rounds = 0;
  WarmUp restless([&](std::int64_t nanoseconds) {
    Round round = device.launch_for()(nanoseconds);
    if (device.factor > 1) round.roundtrip_ns *= 1 + 0.1 * static_cast<double>(rounds++ % 2);
    return round;
  });
  restless.warm_up();
  device.factor = 1.5;
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_FALSE(restless.keep());
    EXPECT_EQ(restless.result().again, i) << "the next case looks again";
    EXPECT_NEAR(restless.result().seconds, 0.2 + 0.5 * static_cast<double>(i), 0.03);
  }
  EXPECT_EQ(restless.result().last.call_ns, steady_device.call_ns) << "and by the same measure";
  EXPECT_TRUE(restless.result().steady) << "it was, when measuring began";
  device.factor = 1;
  EXPECT_TRUE(restless.keep());
}

TEST(WarmUp, IsContentWhereLaunchesAreAsFastAgainThoughTheyStillVary) {
  double factor = 1;
  int rounds = 0;
  WarmUp warm_up([&](std::int64_t nanoseconds) {
    const bool look = nanoseconds < 10'000'000;
    Round round{2000, 8000 * (look ? factor : factor > 1 && rounds++ % 2 ? 0.9 : 1), std::nullopt};
    round.seconds = static_cast<double>(nanoseconds) * 1e-9;
    return round;
  });
  warm_up.warm_up();
  ASSERT_TRUE(warm_up.result().steady);
  factor = 1.5;
  EXPECT_TRUE(warm_up.keep());
  EXPECT_NEAR(warm_up.result().seconds, 0.7, 0.03) << "it never became steady";
}

TEST(WarmUp, ReadsTheClockAfterRoundsAndNotAfterLooks) {
  FakeDevice device;
  int read = 0;
  WarmUp warm_up(device.launch_for(), [&] {
    ++read;
    return 1980.0;
  });
  warm_up.warm_up();
  EXPECT_EQ(read, 10);
  EXPECT_EQ(warm_up.result().last.clock_mhz, 1980.0);
  for (int i = 0; i < 100; ++i) warm_up.keep();
  EXPECT_EQ(read, 10);
}

TEST(WarmUp, LooksForNothingWhereNothingWasEverSteady) {
  double factor = 1;
  WarmUp warm_up([&](std::int64_t nanoseconds) {
    Round round{2000 * (factor *= 1.003), 8000, std::nullopt};
    round.seconds = static_cast<double>(nanoseconds) * 1e-9;
    return round;
  });
  warm_up.warm_up();
  EXPECT_FALSE(warm_up.result().steady);
  EXPECT_NEAR(warm_up.result().seconds, 2, 0.03);
  const std::size_t rounds = warm_up.result().rounds;
  EXPECT_TRUE(warm_up.keep());
  EXPECT_EQ(warm_up.result().rounds, rounds);
}

// The host places the worker of a stream by how many there are.
TEST(WarmUp, LeavesTheDeviceAsItWas) {
  const std::unique_ptr<Device> device = open_device("host", "");
  const auto place = [&] {
    device->create_stream();
    return device->facts().details.at("queue_cpu");
  };
  const std::string before = place();
  WarmUp warm_up(empty_launches(*device, [] {}));
  EXPECT_EQ(place(), before);
  warm_up.warm_up();
  EXPECT_EQ(place(), before);
  warm_up.keep();
  EXPECT_EQ(place(), before);
}

TEST(WarmUp, EndsInTimeAndTellsWhatItFound) {
  const std::unique_ptr<Device> device = open_device("host", "");
  int rounds = 0;
  WarmUp warm_up(empty_launches(*device, [&] { ++rounds; }));
  warm_up.warm_up();
  const WarmUpResult& result = warm_up.result();
  EXPECT_EQ(result.rounds, static_cast<std::size_t>(rounds));
  EXPECT_GE(result.rounds, 10u);
  EXPECT_GT(result.last.call_ns, 0);
  EXPECT_GT(result.last.roundtrip_ns, result.last.call_ns);
  EXPECT_GE(result.seconds, 0.2);
  EXPECT_TRUE(result.steady || result.seconds >= 2);
  const std::size_t before = result.rounds;
  warm_up.keep();
  EXPECT_LE(warm_up.result().seconds, 2.5);
  EXPECT_GE(warm_up.result().rounds, before);
}

}  // namespace
}  // namespace launchgap
