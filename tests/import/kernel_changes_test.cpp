#include "harness/import/kernel_changes.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using Duration = std::function<double(int step, int place, std::mt19937_64& random)>;

/// Steps of 12 kernels: "begin" once, then "work" at 11 places, each with a size of its own.
Job steps(int n, std::uint64_t seed, const Duration& factor, double scatter = 0.05) {
  std::mt19937_64 random(seed);
  std::normal_distribution<> normal;
  Job job;
  std::int64_t at = 10'000'000'000;
  std::uint32_t id = 0;
  for (int step = 0; step < n; ++step) {
    for (int place = 0; place < 12; ++place) {
      const double usual = place == 0 ? 5000 : 10'000 + 3000 * (place % 4);
      const double exact = usual * std::exp(scatter * normal(random)) *
                           (place == 0 ? 1 : factor(step, place, random));
      const auto ns = static_cast<std::int64_t>(exact);
      job.kernel(at, at + ns, ++id, {0, 1, 7}, place == 0 ? "begin" : "work");
      at += ns + 1000;
    }
  }
  return job;
}

const Duration kSteady = [](int, int, std::mt19937_64&) { return 1.0; };
const Duration kLaterSlower = [](int step, int, std::mt19937_64&) { return step < 20 ? 1.0 : 1.2; };
const Duration kEitherOr = [](int, int, std::mt19937_64& random) {
  return std::bernoulli_distribution(0.3)(random) ? 1.6 : 1.0;
};

/// What is found of the kernel "work".
struct OfWork {
  explicit OfWork(const Job& job) {
    const auto series = kernels_on(job.process, 0);
    const RepeatedWork work = repeated_work(job.process, series);
    repeats = work.repeats;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (job.process.trace.name(series[i].name) != "work") continue;
      runs = work.runs[i].size();
      changed = change(work.runs[i]);
      modes = two_modes(work.runs[i], 1);
    }
  }
  std::size_t repeats = 0, runs = 0;
  std::optional<Change> changed;
  std::optional<TwoModes> modes;
};

TEST(Changes, StreamsOfDifferentLengthAreNotAddedUp) {
  // Three streams, steady each: 67, 135 and 67 repetitions.
  Job job;
  std::uint32_t id = 0;
  for (const auto& [stream, n] : {std::pair(7u, 67), std::pair(8u, 135), std::pair(9u, 67)}) {
    std::int64_t at = 10'000'000'000;
    for (int i = 0; i < n; ++i) {
      job.kernel(at, at + 5'000, ++id, {0, 1, stream}, "begin");
      job.kernel(at + 6'000, at + 16'000 + i % 3, ++id, {0, 1, stream}, "work");
      at += 20'000;
    }
  }
  const OfWork work(job);
  ASSERT_TRUE(work.changed);
  EXPECT_NEAR(work.changed->early_ns, work.changed->late_ns, 2);
  EXPECT_GT(work.changed->chance, 0.01);
}

TEST(Changes, WhatGrowsAllTheWayIsARampAndAStepIsNone) {
  const Duration grows = [](int step, int, std::mt19937_64&) { return 1.0 + 0.02 * step; };
  const OfWork growing(steps(40, 3, grows)), stepping(steps(40, 3, kLaterSlower));
  ASSERT_TRUE(growing.changed && stepping.changed);
  EXPECT_LT(growing.changed->chance, 1e-4);
  EXPECT_TRUE(growing.changed->ramp);
  EXPECT_LT(stepping.changed->chance, 1e-4);
  EXPECT_FALSE(stepping.changed->ramp);
}

TEST(Changes, ARampIsARankCorrelationOfNineTenths) {
  // Of 20 stretches of two steps each, in an order of which Spearman's correlation is 1 - 6 d² /
  // 7980.
  std::vector<int> order(20);
  std::iota(order.begin(), order.end(), 0);
  const auto is_ramp = [&] {
    const Duration ordered = [&](int step, int, std::mt19937_64&) {
      return 1 + 0.01 * order[static_cast<std::size_t>(step / 2) % 20];
    };
    const OfWork work(steps(41, 1, ordered, 0));
    EXPECT_TRUE(work.changed);
    return work.changed->ramp;
  };
  std::swap(order[0], order[8]);
  std::swap(order[9], order[10]);
  std::swap(order[11], order[12]);
  EXPECT_TRUE(is_ramp()) << "d² = 132";
  std::swap(order[13], order[14]);
  EXPECT_FALSE(is_ramp()) << "d² = 134";
}

TEST(RepeatedWork, BeginsAtTheKernelThatIsOncePerStep) {
  const OfWork work(steps(40, 1, kSteady));
  EXPECT_EQ(work.repeats, 39u) << "of the last nobody knows whether it is whole";
  EXPECT_EQ(work.runs, 39u * 11);
}

TEST(RepeatedWork, LeavesOutAWarmUp) {
  Job job;
  for (int i = 0; i < 7; ++i) job.kernel(1000 + 10 * i, 1005 + 10 * i, 0, {0, 1, 7}, "begin");
  const Job after = steps(30, 1, kSteady);
  for (const activity::KernelRun& kernel : after.process.trace.kernels)
    job.kernel(kernel.begin_ns,
               kernel.end_ns,
               0,
               {0, 1, 7},
               after.process.trace.name(kernel.name).c_str());
  EXPECT_EQ(OfWork(job).repeats, 29u);
}

TEST(RepeatedWork, IsNoneWhereEachStretchIsAnother) {
  std::mt19937_64 random(3);
  Job job;
  for (int i = 0; i < 2000; ++i) {
    const std::string name(1, static_cast<char>('a' + random() % 8));
    job.kernel(1000 + 10 * i, 1005 + 10 * i, 0, {0, 1, 7}, name.c_str());
  }
  const auto series = kernels_on(job.process, 0);
  EXPECT_EQ(repeated_work(job.process, series).repeats, 0u);
}

TEST(RepeatedWork, NeedsTwoThirdsOfTheStretchesToBeAlike) {
  for (const int alike : {12, 11}) {
    Job job;
    std::int64_t at = 1000;
    const auto add = [&](const char* name) {
      job.kernel(at, at + 5, 0, {0, 1, 7}, name);
      at += 10;
    };
    for (int stretch = 0; stretch < 18; ++stretch) {
      add("begin");
      add("work");
      if (stretch >= alike) add("more");
    }
    add("begin");
    EXPECT_EQ(OfWork(job).repeats, alike == 12 ? 12u : 0u) << alike << " of 18";
  }
}

TEST(RepeatedWork, IsOfEachStreamByItself) {
  Job job = steps(40, 1, kSteady);
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::int64_t at = 10'000'000'000 + 12'345 * i;
    job.kernel(at, at + 500, 0, {0, 1, 8}, i % 3 == 0 ? "head" : "tail");
  }
  EXPECT_EQ(OfWork(job).runs, 39u * 11) << "what another stream does between is no part of it";
}

TEST(KernelChange, IsSeenBetweenEarlierAndLaterRepetitions) {
  const OfWork work(steps(40, 1, kLaterSlower));
  ASSERT_TRUE(work.changed);
  EXPECT_LT(work.changed->chance, 1e-4);
  EXPECT_NEAR(work.changed->late_ns / work.changed->early_ns, 1.2, 0.03);
}

TEST(KernelChange, IsSeldomSeenWhereThereIsNone) {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto changed = OfWork(steps(40, seed, kSteady)).changed;
    ASSERT_TRUE(changed);
    told += changed->chance <= 0.01 ? 1 : 0;
  }
  EXPECT_LE(told, 20) << "1 in 100, of 1000";
}

TEST(KernelChange, IsNotSeenInWorkOfSeveralSizes) {
  // The sizes of places differ by 1.9 times, and each step has all of them.
  EXPECT_GT(OfWork(steps(40, 5, kSteady)).changed->chance, 0.01);
  EXPECT_EQ(OfWork(steps(40, 5, kSteady)).modes, std::nullopt);
}

TEST(KernelChange, DoesNotTakeOneHiccupForMany) {
  // Ten steps in a row are slow, of a hundred: two of the twenty stretches.
  const Duration hiccup = [](int step, int, std::mt19937_64&) {
    return step >= 60 && step < 70 ? 2.0 : 1.0;
  };
  EXPECT_GT(OfWork(steps(100, 1, hiccup)).changed->chance, 0.01);
}

TEST(KernelChange, NeedsTwelveRepetitions) {
  EXPECT_EQ(OfWork(steps(12, 1, kLaterSlower)).changed, std::nullopt);
  EXPECT_NE(OfWork(steps(13, 1, kLaterSlower)).changed, std::nullopt);
}

TEST(KernelModes, AreSeenAtTheSamePlaces) {
  const OfWork work(steps(40, 1, kEitherOr));
  ASSERT_TRUE(work.modes);
  EXPECT_NEAR(work.modes->slow_share, 0.3, 0.06);
  EXPECT_NEAR(work.modes->apart_ns / work.modes->fast_ns, 0.6, 0.15);
}

TEST(KernelModes, AreSeldomSeenWhereThereAreNone) {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    told += OfWork(steps(30, seed, kSteady, seed % 2 == 0 ? 0.02 : 0.3)).modes ? 1 : 0;
  EXPECT_LE(told, 2);
}

TEST(KernelModes, AreNoneOfALongTail) {
  const Duration tail = [](int, int, std::mt19937_64& random) {
    return 1 + std::exponential_distribution<>(3)(random);
  };
  int told = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    told += OfWork(steps(30, seed, tail)).modes ? 1 : 0;
  EXPECT_LE(told, 2);
}

}  // namespace
}  // namespace launchgap::recording
