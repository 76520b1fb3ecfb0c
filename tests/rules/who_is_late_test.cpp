#include "harness/rules/who_is_late.h"

#include <random>

#include <gmock/gmock.h>

namespace launchgap::rules {
namespace {

using namespace testing;

constexpr std::size_t kSteps = 100, kDevices = 8;
constexpr double kWork = 1e6, kHost = 3000, kJitter = 2000, kUncertainty = 500;

/// Steps of equal devices.
std::vector<StepTimes> even(unsigned seed = 1, std::size_t devices = kDevices) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> jitter(0, kJitter);
  std::vector<StepTimes> all(devices);
  for (StepTimes& device : all) {
    for (std::size_t s = 0; s < kSteps; ++s) {
      device.host.push_back(kHost + jitter(random) / 10);
      device.work.push_back(kWork + jitter(random));
    }
  }
  return all;
}

WhoIsLate judged(const std::vector<StepTimes>& devices, double uncertainty = kUncertainty) {
  return who_is_late(devices, uncertainty);
}

TEST(WhoIsLate, OfEvenDevicesNobody) {
  for (unsigned seed = 0; seed < 200; ++seed)
    EXPECT_EQ(judged(even(seed)).lateness, Lateness::none) << seed;
}

TEST(WhoIsLate, OneWhoseWorkTakesLonger) {
  std::vector<StepTimes> devices = even();
  for (double& work : devices[3].work) work *= 1.03;
  const WhoIsLate found = judged(devices);
  EXPECT_EQ(found.lateness, Lateness::one);
  EXPECT_THAT(found.who, ElementsAre(3u));
  EXPECT_FALSE(found.by_host);
  EXPECT_NEAR(found.late_ns, 30'000, 2000);
  EXPECT_GT(found.last[3], 95u);
}

TEST(WhoIsLate, ButNotByLessThanTwoPercent) {
  std::vector<StepTimes> devices = even();
  for (double& work : devices[3].work) work *= 1.015;
  EXPECT_EQ(judged(devices).lateness, Lateness::none);
}

TEST(WhoIsLate, NorByLessThanIsNotSeen) {
  std::vector<StepTimes> devices = even();
  for (double& work : devices[3].work) work *= 1.03;
  EXPECT_EQ(judged(devices, 40'000).lateness, Lateness::none);
  EXPECT_EQ(judged(devices, 20'000).lateness, Lateness::one);
}

TEST(WhoIsLate, OneWhoseCallsTakeLonger) {
  std::vector<StepTimes> devices = even();
  for (double& host : devices[5].host) host += 50'000;
  const WhoIsLate found = judged(devices);
  EXPECT_EQ(found.lateness, Lateness::one);
  EXPECT_THAT(found.who, ElementsAre(5u));
  EXPECT_TRUE(found.by_host);
}

TEST(WhoIsLate, SeveralAreNotNobody) {
  for (const std::size_t slow : {2, 3, 4, 5, 6}) {
    std::vector<StepTimes> devices = even(static_cast<unsigned>(slow));
    for (std::size_t d = 0; d < slow; ++d) {
      for (double& work : devices[d].work) work *= 1.3;
    }
    const WhoIsLate found = judged(devices);
    EXPECT_EQ(found.lateness, Lateness::some) << slow;
    EXPECT_THAT(found.who, SizeIs(slow));
    EXPECT_NEAR(found.late_ns, 300'000, 3000);
    EXPECT_FALSE(found.by_host);
  }
}

TEST(WhoIsLate, AnotherOneEachTime) {
  std::vector<StepTimes> devices = even();
  for (std::size_t s = 0; s < kSteps; ++s) devices[s % kDevices].work[s] *= 1.2;
  const WhoIsLate found = judged(devices);
  EXPECT_EQ(found.lateness, Lateness::at_times);
  EXPECT_THAT(found.who, IsEmpty());
  EXPECT_DOUBLE_EQ(found.late_share, 1);
  EXPECT_FALSE(found.by_host);
}

TEST(WhoIsLate, TheSameOneAtTimes) {
  std::vector<StepTimes> devices = even();
  for (std::size_t s = 0; s < kSteps; s += 5) devices[2].host[s] += 200'000;
  const WhoIsLate found = judged(devices);
  EXPECT_EQ(found.lateness, Lateness::at_times);
  EXPECT_THAT(found.who, ElementsAre(2u));
  EXPECT_TRUE(found.by_host);
  EXPECT_DOUBLE_EQ(found.late_share, 0.2);
}

/// As a thread whose CPU another program wants: in less than half of the steps by a multiple of the
/// step, and in the rest by little.
TEST(WhoIsLate, OneThatIsLateByLittleAlwaysAndByMuchAtTimesIsSoAtTimes) {
  std::vector<StepTimes> devices = even(1, 2);
  for (double& work : devices[1].work) work *= 1.025;
  for (std::size_t s = 0; s < kSteps; ++s)
    if (s % 5 < 2) devices[1].host[s] += 3 * kWork;
  const WhoIsLate found = judged(devices);
  EXPECT_EQ(found.lateness, Lateness::at_times);
  EXPECT_THAT(found.who, ElementsAre(1u));
  EXPECT_TRUE(found.by_host);
  EXPECT_DOUBLE_EQ(found.late_share, 0.4);
}

TEST(WhoIsLate, ButAFewSlowStepsOfAnotherHideNoneThatIsAlwaysLate) {
  std::vector<StepTimes> devices = even();
  for (double& work : devices[3].work) work *= 1.1;
  for (std::size_t s = 0; s < kSteps; s += 10) devices[5].work[s] *= 1.5;
  EXPECT_EQ(judged(devices).lateness, Lateness::one);
  EXPECT_THAT(judged(devices).who, ElementsAre(3u));
}

TEST(WhoIsLate, AFewSlowStepsAreNone) {
  std::vector<StepTimes> devices = even();
  for (std::size_t s = 0; s < 9; ++s) devices[s % kDevices].work[10 * s] *= 3;
  EXPECT_EQ(judged(devices).lateness, Lateness::none);
  devices[1].work[95] *= 3;
  EXPECT_EQ(judged(devices).lateness, Lateness::at_times) << "with the tenth";
}

TEST(WhoIsLate, WhatAllShareIsNotSeen) {
  std::vector<StepTimes> devices = even();
  for (StepTimes& device : devices) {
    for (double& work : device.work) work *= 2;
  }
  EXPECT_EQ(judged(devices).lateness, Lateness::none);
}

TEST(WhoIsLate, OfTwoTheLaterOne) {
  std::vector<StepTimes> devices = even(1, 2);
  for (double& work : devices[1].work) work *= 1.1;
  EXPECT_THAT(judged(devices).who, ElementsAre(1u));
  EXPECT_EQ(judged(even(2, 2)).lateness, Lateness::none);
}

TEST(WhoIsLate, OfNothingOrTornStepsNobody) {
  EXPECT_EQ(judged({}).lateness, Lateness::none);
  EXPECT_EQ(judged(even(1, 1)).lateness, Lateness::none);
  EXPECT_EQ(judged(std::vector<StepTimes>(3)).lateness, Lateness::none);
  std::vector<StepTimes> torn = even();
  torn[2].work.pop_back();
  EXPECT_EQ(judged(torn).lateness, Lateness::none);
}

TEST(WhoIsLate, HoldsOnlyWhereEachProcessSaysTheSame) {
  std::vector<StepTimes> third = even(), fourth = even(), by_host = even();
  for (double& work : third[3].work) work *= 1.1;
  for (double& work : fourth[4].work) work *= 1.1;
  for (double& host : by_host[3].host) host += 100'000;
  const WhoIsLate a = judged(third), b = judged(fourth), c = judged(by_host), d = judged(even());
  EXPECT_THAT(in_each(std::vector{a, a, a}).who, ElementsAre(3u));
  EXPECT_EQ(in_each(std::vector{a, a, a}).last[3], 3 * a.last[3]);
  for (const WhoIsLate& other : {b, c, d})
    EXPECT_EQ(in_each(std::vector{a, a, other}).lateness, Lateness::unclear);
  EXPECT_EQ(in_each(std::vector{d, d, d}).lateness, Lateness::none);
  EXPECT_EQ(in_each(std::vector{d, a, d}).lateness, Lateness::none);
  EXPECT_EQ(in_each(std::vector{d, a, d}).otherwise, 1u);
  EXPECT_EQ(in_each(std::vector{d, a}).lateness, Lateness::unclear);
  std::vector<StepTimes> both = third;
  for (double& work : both[4].work) work *= 1.1;
  const WhoIsLate e = judged(both);
  EXPECT_THAT(e.who, ElementsAre(3u, 4u));
  EXPECT_THAT(in_each(std::vector{a, e, a}).who, ElementsAre(3u)) << "what holds in each";
  EXPECT_EQ(in_each(std::vector{e, a}).lateness, Lateness::unclear);
  EXPECT_EQ(in_each(std::vector{e, e}).lateness, Lateness::some);
  EXPECT_EQ(in_each({}).lateness, Lateness::none);

  std::vector<StepTimes> times = even(), others_times = even(), always = even();
  for (std::size_t s = 0; s < kSteps; s += 5) {
    times[3].host[s] += 2 * kWork;
    others_times[4].host[s] += 2 * kWork;
  }
  for (double& host : always[3].host) host += kWork;
  const WhoIsLate f = judged(times), g = judged(always), h = judged(others_times);
  EXPECT_EQ(in_each(std::vector{f, g, f}).lateness, Lateness::at_times) << "the weaker one";
  EXPECT_THAT(in_each(std::vector{g, f, g}).who, ElementsAre(3u));
  for (const WhoIsLate& other : {a, h, d})
    EXPECT_EQ(in_each(std::vector{f, g, other}).lateness, Lateness::unclear);
}

}  // namespace
}  // namespace launchgap::rules
