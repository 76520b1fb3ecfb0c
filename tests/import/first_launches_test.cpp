#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "harness/import/job_figures.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

constexpr int kKernels = 8;

/// 8 kernels in turn, 60 times; a call takes about 5 us, and by a factor longer at a kernel's
/// first.
Job turns(std::uint64_t seed, double first_factor, double slow_start = 1) {
  static const std::string names[kKernels] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  std::mt19937_64 random(seed);
  std::lognormal_distribution<> call_ns(std::log(5000), 0.3);
  Job job;
  std::int64_t at = 10'000'000'000;
  for (int i = 0; i < 60 * kKernels; ++i) {
    const double factor = (i < kKernels ? first_factor : 1) * (i < 12 * kKernels ? slow_start : 1);
    const auto ns = static_cast<std::int64_t>(call_ns(random) * factor);
    const auto id = static_cast<std::uint32_t>(i + 1);
    job.call(at, at + ns, id);
    job.kernel(at + ns + 1000, at + ns + 3000, id, {0, 1, 7}, names[i % kKernels].c_str());
    at += ns + 10'000;
  }
  return job;
}

std::optional<FirstLaunches> found(const Job& job) {
  return first_launches(job.process, launches_of(job.process, 1), 0);
}

TEST(FirstLaunches, AreToldFromLaterOnes) {
  const auto firsts = found(turns(1, 20));
  ASSERT_TRUE(firsts);
  EXPECT_EQ(firsts->kernels, 8u);
  EXPECT_LT(firsts->chance, 1e-6);
  EXPECT_NEAR(firsts->later_p50_ns, 5000, 500);
  EXPECT_GT(firsts->first_p50_ns, 50'000);
  EXPECT_NEAR(static_cast<double>(firsts->extra_ns), 8 * 95'000, 8 * 40'000);
  EXPECT_EQ(firsts->slow, 5u) << "of 480 launches over the 99th percentile";
  EXPECT_EQ(firsts->slow_firsts, 5u);
}

TEST(FirstLaunches, AreNotToldWhereTheyAreLikeLaterOnes) {
  int told = 0;
  constexpr int kSeeds = 1000;
  for (int seed = 0; seed < kSeeds; ++seed)
    told += found(turns(static_cast<std::uint64_t>(seed), 1))->chance <= 0.01 ? 1 : 0;
  EXPECT_LE(told, 20) << "1 in 100, of " << kSeeds;
}

TEST(FirstLaunches, AreToldFromABeginningThatIsSlow) {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const FirstLaunches firsts = *found(turns(seed, 1, 3));
    told += firsts.chance <= 0.01 && firsts.first_p50_ns >= 1.5 * firsts.next_p50_ns ? 1 : 0;
  }
  EXPECT_LE(told, 4) << "the launches right after the first are as slow";
  const FirstLaunches both = *found(turns(1, 20, 3));
  EXPECT_GE(both.first_p50_ns, 10 * both.next_p50_ns);
}

TEST(FirstLaunches, AreOfOneGpu) {
  Job job = turns(1, 20);
  EXPECT_EQ(first_launches(job.process, launches_of(job.process, 1), 1), std::nullopt);
}

TEST(FirstLaunches, NeedLaterOnes) {
  Job job;
  for (std::uint32_t i = 0; i < 5; ++i)
    job.call(1000 + 100 * i, 1050 + 100 * i, i + 1).kernel(1060 + 100 * i, 1070 + 100 * i, i + 1);
  EXPECT_EQ(found(job), std::nullopt);
}

/// Launches of these kernels, one after the other, whose calls take so long.
Job calls_of_kernels(
    const std::vector<std::pair<const char*, std::vector<std::int64_t>>>& kernels) {
  Job job;
  std::int64_t at = 1'000;
  std::uint32_t id = 0;
  for (const auto& [name, times] : kernels) {
    for (const std::int64_t ns : times) {
      ++id;
      job.call(at, at + ns, id).kernel(at + ns, at + ns + 5, id, kStream, name);
      at += ns + 100;
    }
  }
  return job;
}

TEST(FirstLaunches, NeedFiveLaterOnes) {
  EXPECT_FALSE(found(calls_of_kernels({{"a", {9, 1, 1, 1, 1}}})));
  EXPECT_FALSE(found(calls_of_kernels({{"a", {9, 1, 1, 1, 1}}, {"b", {9, 1}}})));
  EXPECT_TRUE(found(calls_of_kernels({{"a", {9, 1, 1, 1, 1, 1}}})));
}

TEST(FirstLaunches, OfOneKernelHaveTheChanceOfItsRank) {
  const auto one = found(calls_of_kernels({{"a", {100, 1, 2, 3, 40, 50, 160, 7, 100, 9}}}));
  ASSERT_TRUE(one);
  EXPECT_NEAR(one->chance, 3.0 / 10, 1e-12) << "160 and 100 are as slow, of nine";
  EXPECT_EQ(one->kernels, 1u);
  EXPECT_EQ(one->first_p50_ns, 100);
  EXPECT_EQ(one->later_p50_ns, 9);
  EXPECT_EQ(one->next_p50_ns, 3) << "of 1, 2, 3, 40 and 50";
  EXPECT_EQ(one->extra_ns, 91);
  EXPECT_EQ(one->slow, 1u);
  EXPECT_EQ(one->slow_firsts, 0u);
  // Of more than a hundred later ones the next hundred count.
  std::vector<std::int64_t> times(151, 10);
  times[0] = 20;
  std::fill(times.begin() + 100, times.end(), 30);
  EXPECT_NEAR(found(calls_of_kernels({{"a", times}}))->chance, 2.0 / 101, 1e-12);
  EXPECT_NEAR(found(calls_of_kernels({{"a", {1, 2, 3, 4, 5, 6}}}))->chance, 1, 1e-12);
}

TEST(FirstLaunches, OfSeveralKernelsAreTakenTogether) {
  const auto two = found(calls_of_kernels(
      {{"a", {100, 10, 10, 10, 10, 10}}, {"b", {20, 30, 30, 30, 30, 30, 30}}, {"c", {500, 1}}}));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->kernels, 2u);
  // Fisher: chi-square of -2 log(1/6) with four degrees of freedom.
  EXPECT_NEAR(two->chance, (1 + std::log(6)) / 6, 1e-12);
  EXPECT_EQ(two->extra_ns, 90) << "a first that is quicker takes nothing back";
  EXPECT_EQ(two->first_p50_ns, 60);
  EXPECT_EQ(two->later_p50_ns, 20);
  EXPECT_EQ(two->next_p50_ns, 20);
  EXPECT_EQ(two->slow, 1u);
  EXPECT_EQ(two->slow_firsts, 1u) << "also of a kernel with too few";
}

TEST(FirstLaunches, AreNoneOfGraphsOrOfLostKernels) {
  Job job;
  job.call(100, 190, 90, activity::Purpose::launch_graph).kernel(200, 210, 90);
  job.call(300, 390, 91);
  job.call(400, 490, 92).kernel(500, 510, 92, kOtherGpu);
  for (std::uint32_t i = 0; i < 6; ++i)
    job.call(1'000 + 100 * i, 1'010 + 100 * i, i + 1)
        .kernel(1'060 + 100 * i, 1'070 + 100 * i, i + 1);
  const auto firsts = found(job);
  ASSERT_TRUE(firsts);
  EXPECT_EQ(firsts->first_p50_ns, 10);
  EXPECT_NEAR(firsts->chance, 1, 1e-12);
}

}  // namespace
}  // namespace launchgap::recording
