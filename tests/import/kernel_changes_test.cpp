#include "harness/import/kernel_changes.h"

#include <algorithm>
#include <array>
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

/// A kernel that runs once per repetition, for so long each time.
std::vector<PlacedRun> once_per_repeat(const std::vector<std::int64_t>& times,
                                       std::uint32_t stream = 0,
                                       std::uint32_t place = 0) {
  std::vector<PlacedRun> runs;
  for (std::uint32_t i = 0; i < times.size(); ++i) runs.push_back({i, place, times[i], stream});
  return runs;
}

TEST(KernelChange, IsTheChanceOfTheRanksOfStretches) {
  // Every later one is slower: 2 of all orders of 2 x 6 and of 2 x 10 stretches.
  std::vector<std::int64_t> rising(12);
  std::iota(rising.begin(), rising.end(), 100);
  const auto of_12 = change(once_per_repeat(rising));
  ASSERT_TRUE(of_12);
  EXPECT_DOUBLE_EQ(of_12->chance, 2.0 / 924);
  EXPECT_EQ(of_12->early_ns, 102.5);
  EXPECT_EQ(of_12->late_ns, 108.5);
  EXPECT_EQ(of_12->repeats, 12u);
  EXPECT_TRUE(of_12->ramp);
  rising.push_back(112);
  const auto of_13 = change(once_per_repeat(rising));
  ASSERT_TRUE(of_13);
  EXPECT_EQ(of_13->early_ns, 102.5) << "the first 6 of 13";
  EXPECT_EQ(of_13->late_ns, 109);
  rising.resize(50);
  std::iota(rising.begin(), rising.end(), 100);
  EXPECT_DOUBLE_EQ(change(once_per_repeat(rising))->chance, 2.0 / 184'756);
  rising.resize(11);
  EXPECT_EQ(change(once_per_repeat(rising)), std::nullopt);
  // 33 repetitions are stretches of one and two, whose medians scipy's mannwhitneyu compares.
  const auto of_33 = change(once_per_repeat(
      {206, 262, 238, 232, 200, 248, 222, 202, 264, 244, 208, 212, 204, 210, 230, 214, 254,
       216, 273, 263, 259, 275, 251, 279, 247, 257, 269, 265, 249, 243, 241, 283, 281}));
  ASSERT_TRUE(of_33);
  EXPECT_NEAR(of_33->chance, 0.001050033557773496, 1e-15);
  EXPECT_EQ(of_33->early_ns, 218);
  EXPECT_EQ(of_33->late_ns, 259);
}

TEST(KernelChange, IsOfAllRunsOfARepetitionTogether) {
  std::vector<PlacedRun> runs;
  for (std::uint32_t repeat = 0; repeat < 26; repeat += 2) {  // others have been left out
    runs.push_back({repeat, 0, 10, 0});
    runs.push_back({repeat, 3, 20, 0});
    runs.push_back({repeat, 4, 30 + repeat, 0});
  }
  const auto found = change(runs);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->repeats, 13u);
  EXPECT_EQ(found->early_ns, 65);
  EXPECT_EQ(found->late_ns, 78);
}

TEST(KernelChange, OfSeveralStreamsIsWhereItIsSurest) {
  std::vector<std::int64_t> rising(12), steady(12, 100);
  std::iota(rising.begin(), rising.end(), 100);
  std::vector<PlacedRun> runs = once_per_repeat(std::vector<std::int64_t>(11, 100), 1);
  const auto add = [&](const std::vector<std::int64_t>& times, std::uint32_t stream) {
    const std::vector<PlacedRun> more = once_per_repeat(times, stream);
    runs.insert(runs.end(), more.begin(), more.end());
  };
  EXPECT_EQ(change(runs), std::nullopt) << "of 11 repetitions";
  add(steady, 2);
  EXPECT_EQ(change(runs)->chance, 1);
  add(rising, 3);
  EXPECT_DOUBLE_EQ(change(runs)->chance, 2 * 2.0 / 924) << "of two that are long enough";
  EXPECT_EQ(change(runs)->late_ns, 108.5);
  for (std::int64_t& ns : rising) ns += 1000;
  add(rising, 4);
  EXPECT_EQ(change(runs)->late_ns, 108.5) << "the first of equals";
  EXPECT_DOUBLE_EQ(change(runs)->chance, 3 * 2.0 / 924);
  runs.clear();
  add(steady, 1);
  add(steady, 2);
  EXPECT_EQ(change(runs)->chance, 1) << "and no more";
  EXPECT_FALSE(change(runs)->ramp);
}

TEST(KernelChange, ARampOfEqualTimesHasTheMeansOfTheirRanks) {
  // By scipy's spearmanr 0.900073 and 0.899999.
  EXPECT_TRUE(
      change(once_per_repeat({0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 4, 3, 3, 3, 4, 2, 4, 4, 4, 4}))->ramp);
  EXPECT_FALSE(
      change(once_per_repeat({0, 0, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3}))->ramp);
  EXPECT_TRUE(
      change(once_per_repeat({4, 4, 4, 3, 3, 2, 2, 2, 2, 2, 0, 1, 1, 1, 0, 2, 0, 0, 0, 0}))->ramp)
      << "down";
}

TEST(KernelsOn, AreByNameGridAndBlockAndByBegin) {
  Job job;
  job.kernel(300, 310, 1).kernel(0, 10, 2).kernel(100, 110, 3).kernel(150, 160, 4, kOtherGpu);
  job.kernel(200, 210, 5).kernel(100, 105, 6).kernel(50, 60, 7, kStream, "another");
  job.process.trace.kernels[4].grid[0] = 2;
  const auto series = kernels_on(job.process, 0);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].runs, (std::vector<std::uint32_t>{2, 5, 0})) << "of equals the first";
  EXPECT_EQ(series[1].runs, (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(series[1].grid, (KernelSeries::Shape{2, 1, 1}));
  EXPECT_EQ(series[2].runs, (std::vector<std::uint32_t>{6}));
  EXPECT_EQ(job.process.trace.name(series[2].name), "another");
}

TEST(RepeatedWork, HasTheRepetitionAndThePlaceOfEachRun) {
  // "head" and twice "tail" on one stream, ten times, and "head" and "tail" on another, 12 times.
  Job job;
  for (std::int64_t i = 0; i < 10; ++i) {
    job.kernel(1'000 + 100 * i, 1'010 + 100 * i, 0, kStream, "head");
    job.kernel(1'020 + 100 * i, 1'022 + 100 * i, 0, kStream, "tail");
    job.kernel(1'030 + 100 * i, 1'033 + 100 * i, 0, kStream, "tail");
  }
  for (std::int64_t i = 0; i < 12; ++i) {
    job.kernel(1'050 + 100 * i, 1'054 + 100 * i, 0, kOther, "head");
    job.kernel(1'060 + 100 * i, 1'065 + 100 * i, 0, kOther, "tail");
  }
  const auto series = kernels_on(job.process, 0);
  const RepeatedWork work = repeated_work(job.process, series);
  EXPECT_EQ(work.repeats, 11u);
  ASSERT_EQ(work.runs.size(), 2u);
  std::vector<std::array<std::int64_t, 4>> found;
  for (const PlacedRun& run : work.runs[1])
    found.push_back({run.stream, run.repeat, run.place, run.ns});
  ASSERT_EQ(found.size(), 9u * 2 + 11u);
  using Run = std::array<std::int64_t, 4>;
  EXPECT_EQ(found[0], (Run{0, 0, 1, 2}));
  EXPECT_EQ(found[1], (Run{0, 0, 2, 3}));
  EXPECT_EQ(found[2], (Run{0, 1, 1, 2}));
  EXPECT_EQ(found[17], (Run{0, 8, 2, 3})) << "the last of the first stream";
  EXPECT_EQ(found[18], (Run{1, 0, 4, 5})) << "behind the three places of the first";
  EXPECT_EQ(found[28], (Run{1, 10, 4, 5}));
}

TEST(RepeatedWork, NeedsAKernelThatOccursTenTimes) {
  for (const int times : {9, 10}) {
    Job job;
    for (std::int64_t i = 0; i < times; ++i) job.kernel(1'000 + 100 * i, 1'010 + 100 * i, 0);
    const auto series = kernels_on(job.process, 0);
    EXPECT_EQ(repeated_work(job.process, series).repeats, times == 10 ? 9u : 0u);
  }
}

TEST(RepeatedWork, BeginsAtOneOf32Kernels) {
  // "last" occurs 62 times, and 41 times nothing comes before it comes again. All others occur ten
  // times, each time in another order.
  for (const int others : {31, 32}) {
    Job job;
    std::int64_t at = 1'000;
    const auto add = [&](const std::string& name) {
      job.kernel(at, at + 5, 0, kStream, name.c_str());
      at += 10;
    };
    for (int stretch = 0; stretch < 62; ++stretch) {
      add("last");
      for (int i = 0; i < others && stretch < 20; ++i) {
        const int other = (i + stretch * 5) % others;
        if ((other + stretch) % 2 == 0) add(std::to_string(other));
      }
    }
    const auto series = kernels_on(job.process, 0);
    EXPECT_EQ(repeated_work(job.process, series).repeats, others == 31 ? 41u : 0u);
  }
}

/// Each of these, so many times, in turn.
std::vector<std::int64_t> both(const std::vector<std::int64_t>& fast,
                               int times_fast,
                               const std::vector<std::int64_t>& slow,
                               int times_slow) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < std::max(times_fast, times_slow); ++i) {
    if (i < times_fast) all.insert(all.end(), fast.begin(), fast.end());
    if (i < times_slow) all.insert(all.end(), slow.begin(), slow.end());
  }
  return all;
}

/// As many values about one, of which the median is so far away from it.
std::vector<std::int64_t> away_by_7(std::int64_t middle) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = -14; i <= 14; ++i) values.push_back(middle + i);
  return values;
}
std::vector<std::int64_t> away_by_1(std::int64_t middle) {
  std::vector<std::int64_t> values;
  for (const int i : {-4, -3, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4})
    values.push_back(middle + i);
  return values;
}

TEST(KernelModes, LieApartByFourTimesTheirScatter) {
  // 1.4826 times the root of (49 + 1) / 2, four times: 29.65.
  for (const std::int64_t apart : {29, 30}) {
    const auto narrow_slow =
        two_modes(once_per_repeat(both(away_by_7(200), 7, away_by_1(200 + apart), 12)), 1);
    const auto narrow_fast =
        two_modes(once_per_repeat(both(away_by_1(200), 12, away_by_7(200 + apart), 7)), 1);
    EXPECT_EQ(narrow_slow.has_value(), apart == 30);
    EXPECT_EQ(narrow_fast.has_value(), apart == 30);
    if (apart < 30) continue;
    EXPECT_EQ(narrow_slow->apart_ns, 30);
    EXPECT_EQ(narrow_slow->fast_ns, 200);
    EXPECT_EQ(narrow_slow->slow_share, 204.0 / 407);
    EXPECT_EQ(narrow_fast->slow_share, 203.0 / 407);
  }
}

TEST(KernelModes, LieApartByATenthOfTheTimeAndByThreeTicks) {
  const auto apart_by = [](std::int64_t apart, std::int64_t tick_ns) {
    return two_modes(once_per_repeat(both(away_by_1(1'000), 6, away_by_1(1'000 + apart), 6)),
                     tick_ns)
        .has_value();
  };
  EXPECT_TRUE(apart_by(100, 1));
  EXPECT_FALSE(apart_by(99, 1));
  EXPECT_TRUE(apart_by(300, 100));
  EXPECT_FALSE(apart_by(299, 100));
}

TEST(KernelModes, HoldFivePercentOfTheRuns) {
  for (const bool few_are_slow : {true, false}) {
    std::vector<std::int64_t> times;
    for (std::int64_t i = 0; i < 400; ++i)
      times.push_back((i % 20 == 0) == few_are_slow ? 2'000 + i / 20 % 10 : 1'000 + i % 20);
    const auto modes = two_modes(once_per_repeat(times), 1);
    ASSERT_TRUE(modes);
    EXPECT_DOUBLE_EQ(modes->slow_share, few_are_slow ? 0.05 : 0.95);
    EXPECT_NEAR(modes->fast_ns, 1'005, 6);
    EXPECT_NEAR(modes->apart_ns, 1'000, 12);
  }
}

TEST(KernelModes, AreOfFortyRunsAtLeast) {
  for (const std::size_t runs : {39, 40}) {
    std::vector<std::int64_t> times =
        both({995, 997, 998, 999, 1'000, 1'001, 1'002, 1'003, 1'005, 1'006},
             2,
             {1'995, 1'997, 1'998, 1'999, 2'000, 2'001, 2'002, 2'003, 2'005, 2'006},
             2);
    times.resize(runs);
    EXPECT_EQ(two_modes(once_per_repeat(times), 1).has_value(), runs == 40);
  }
  EXPECT_EQ(two_modes({}, 1), std::nullopt);
}

TEST(KernelModes, AreOfTheTimesBeyondTheLowerQuartileOfEachPlace) {
  std::vector<PlacedRun> runs;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::int64_t ns = i < 28 ? i : 2'000 + (i - 28);
    runs.push_back({i, 5, 1'000 + ns, 0});
    runs.push_back({i, 9, 5'000 + (i < 28 ? 3 * ns : ns), 0});
  }
  const auto modes = two_modes(runs, 1);
  ASSERT_TRUE(modes);
  // The tenth of 40 is the quartile: 1009 and 5027, of which the middle is 3018.
  EXPECT_EQ(modes->fast_ns, 3'018 + 6.5);
  EXPECT_EQ(modes->apart_ns, 1'981);
  EXPECT_DOUBLE_EQ(modes->slow_share, 0.3);
}

}  // namespace
}  // namespace launchgap::recording
