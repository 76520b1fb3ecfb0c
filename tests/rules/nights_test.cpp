#include "harness/rules/nights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "harness/stats/stats.h"
#include "tests/random.h"
#include "tests/regression/simulated_nights.h"

namespace launchgap::rules {
namespace {

using namespace regression;  // whose simulated nights these are

using testing::HasSubstr;

/// Nights a day apart, of which every second is 1 % above the other.
std::vector<Night> steady_nights(std::size_t count) {
  std::vector<Night> nights;
  for (std::size_t i = 0; i < count; ++i) {
    Night night;
    night.begin_s = static_cast<std::int64_t>(i) * kDayS;
    night.value = i % 2 ? 1010 : 1000;
    night.spread = {i % 2 ? 0.021 : 0.02, i % 2 ? 0.011 : 0.01, i % 2 ? 1.11 : 1.1, 1};
    nights.push_back(night);
  }
  return nights;
}

/// What is judged, and then is one of those before.
NightJudgement next(std::vector<Night>& nights,
                    double value,
                    std::int64_t later_s = kDayS,
                    Direction direction = Direction::lower_is_better) {
  Night night;
  night.begin_s = nights.back().begin_s + later_s;
  night.value = value;
  night.spread = nights.front().spread;
  NightJudgement judgement = judge_night(nights, night, direction);
  remember(judgement, night);
  nights.push_back(night);
  return judgement;
}

TEST(Nights, NeedTwentyBefore) {
  std::vector<Night> nights = steady_nights(19);
  const NightJudgement judgement = next(nights, 2000);
  EXPECT_EQ(judgement.verdict, Verdict::no_baseline);
  EXPECT_EQ(judgement.reason, "needs 20 earlier sessions, has 19");
  EXPECT_EQ(next(nights, 1005).verdict, Verdict::same);
}

TEST(Nights, AreConfirmedByTheThirdInARowOrByFourOfSix) {
  const struct {
    std::vector<double> values;
    const char *verdicts, *reason;  // the reason of the last
  } rows[] = {
      {{1060, 1060, 1060}, "suspect suspect slower", "in 3 sessions in a row"},
      {{1060, 1060, 1005}, "suspect suspect same", ""},  // a good one breaks the row
      {{1060, 1060, 1005, 1060, 1060}, "suspect suspect same suspect slower", "in 4 of 6 sessions"},
      {{1045, 1005, 1045, 1005, 1005, 1045, 1045},  // four of seven are not lasting
       "suspect same suspect same same suspect suspect",
       "in 2 sessions in a row"},
      {{900, 900}, "same same", "faster in 2 sessions in a row"},
      {{900, 900, 900}, "same same faster", "in 3 sessions in a row"},
  };
  for (const auto& row : rows) {
    std::vector<Night> nights = steady_nights(40);
    std::vector<std::string_view> verdicts;
    NightJudgement last;
    for (const double value : row.values) {
      last = next(nights, value);
      verdicts.push_back(name_of(last.verdict));
    }
    EXPECT_EQ(fmt::format("{}", fmt::join(verdicts, " ")), row.verdicts);
    EXPECT_THAT(last.reason, HasSubstr(row.reason)) << row.verdicts;
  }
}

TEST(Nights, InARowAreCountedFromTheLastGoodOne) {
  std::vector<Night> nights = steady_nights(40);
  next(nights, 1060);
  next(nights, 1060);
  const NightJudgement third = next(nights, 1060);
  EXPECT_EQ(third.hits_in_a_row, 3);
  EXPECT_NEAR(*third.change, 0.055, 0.006);
  next(nights, 1005);
  EXPECT_EQ(next(nights, 1060).hits_in_a_row, 1);
}

TEST(Nights, ConfirmedOnesAreNotComparedWith) {
  std::vector<Night> nights = steady_nights(40);
  for (int i = 0; i < 100; ++i) {
    const NightJudgement judgement = next(nights, 1060);
    EXPECT_EQ(judgement.verdict, i < 2 ? Verdict::suspect : Verdict::slower) << i;
  }
}

TEST(Nights, SessionsWithinSixHoursCountOnce) {
  std::vector<Night> nights = steady_nights(40);
  next(nights, 1060);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(next(nights, 1060, 3600).verdict, Verdict::suspect);
  EXPECT_EQ(next(nights, 1060, kNightApartS - std::int64_t{5} * 3600 - 1).hits_in_a_row, 1);
  EXPECT_EQ(next(nights, 1060, 1).hits_in_a_row, 2) << "six hours after the first";
}

TEST(Nights, LessThanWhatCountsIsTheSame) {
  std::vector<Night> nights = steady_nights(40);
  for (Night& night : nights) night.value = 1000;  // no variation at all
  Night now = nights.back();
  now.begin_s += kDayS;
  const auto hits = [&](double value, double least_step) {
    now.value = value;
    return judge_night(nights, now, Direction::lower_is_better, least_step).hit;
  };
  EXPECT_EQ(hits(1029, 0), 0);
  EXPECT_EQ(hits(1031, 0), 1);
  EXPECT_EQ(hits(971, 0), 0);
  EXPECT_EQ(hits(970, 0), -1);
  EXPECT_EQ(hits(1049, 50), 0) << "less than a tick, or 100 ns";
  EXPECT_EQ(hits(1051, 50), 1);
}

TEST(Nights, HitWhereTheyAreThreeDeviationsAway) {
  std::vector<Night> nights = steady_nights(40);
  for (std::size_t i = 0; i < nights.size(); ++i)
    nights[i].value = 1000 * std::exp(0.01 * (static_cast<double>(i % 5) - 2));
  const double limit = 3 * 1.4826 * 0.01;
  const auto found = [&nights](double log_ratio) {
    std::vector<Night> those = nights;
    return next(those, 1000 * std::exp(log_ratio)).hit;
  };
  EXPECT_EQ(found(limit - 1e-4), 0);
  EXPECT_EQ(found(limit + 1e-4), 1);
  EXPECT_EQ(found(-limit + 1e-4), 0);
  EXPECT_EQ(found(-limit - 1e-4), -1);
}

TEST(Nights, MoreIsBetterForThroughput) {
  std::vector<Night> nights = steady_nights(40);
  EXPECT_EQ(next(nights, 1100, kDayS, Direction::higher_is_better).hit, -1);
  const NightJudgement judgement = next(nights, 900, kDayS, Direction::higher_is_better);
  EXPECT_EQ(judgement.verdict, Verdict::suspect);
  EXPECT_GT(*judgement.z, 3);
}

TEST(Nights, WithoutARatioAreWatched) {
  std::vector<Night> nights = steady_nights(40);
  EXPECT_EQ(next(nights, 0).verdict, Verdict::watch);
  EXPECT_EQ(next(nights, 1000).verdict, Verdict::watch);  // the 0 is among those before
}

TEST(Nights, AreAsSlowAsEarlierOnes) {
  std::vector<Night> nights = steady_nights(40);
  for (const double value : {1060.0, 1060.0}) next(nights, value);
  for (int i = 0; i < 8; ++i) next(nights, 1005);
  EXPECT_EQ(next(nights, 1060).reason, "in this session alone; as slow as in 2 earlier sessions");
  next(nights, 1060);
  EXPECT_EQ(next(nights, 1060).reason, "in 3 sessions in a row; as slow as in 2 earlier sessions");
  EXPECT_EQ(next(nights, 1060).reason, "in 4 sessions in a row; as slow as in 2 earlier sessions")
      << "the row itself is not what was before";
}

TEST(Nights, DriftIsNoScatterFromTwentyOn) {
  std::vector<Night> nights = steady_nights(20);
  for (std::size_t i = 0; i < nights.size(); ++i)
    nights[i].value = 1000 * std::pow(1.01, static_cast<double>(i));
  const NightJudgement judgement = next(nights, 1000 * std::pow(1.01, 20));
  EXPECT_EQ(judgement.hit, 1) << "10 % above the median, on a line";
}

TEST(Nights, OfAnyBeforeNoneIsAsSlowThatIsNoHit) {
  std::vector<Night> nights;
  for (const Night& night : steady_nights(60)) {
    nights.push_back(night);
    nights.back().value = nights.size() % 2 ? 1000 : 1005;
  }
  EXPECT_EQ(next(nights, 1034).reason, "in this session alone")
      << "1005 is within 3 % of it, and within what nights vary by";
}

TEST(Nights, BeginWithTheFirstHitOfThoseThatTheyContinue) {
  const auto since = [](const std::vector<double>& values) {
    std::vector<Night> nights = steady_nights(40);
    NightJudgement judgement;
    for (const double value : values) judgement = next(nights, value);
    return judgement.since_s ? static_cast<int>(*judgement.since_s / kDayS) - 40 : -1;
  };
  EXPECT_EQ(since({1060}), 0);
  EXPECT_EQ(since({1060, 1060, 1060}), 0);
  EXPECT_EQ(since({1060, 1005, 1005, 1060}), 0) << "two between them";
  EXPECT_EQ(since({1060, 1005, 1005, 1005, 1060, 1060}), 4) << "three";
  EXPECT_EQ(since({1060, 1060, 1005}), 2) << "no hit begins with itself";
  EXPECT_EQ(since({940, 1005, 940, 940}), 0) << "of what is faster too";
  EXPECT_EQ(since({940, 1060, 1060}), 1);
}

TEST(Nights, WhatCouldNotBeJudgedIsPartOfTheRow) {
  std::vector<Night> nights = steady_nights(18);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next(nights, 1100).verdict, Verdict::no_baseline);
  const NightJudgement judgement = next(nights, 1100);
  EXPECT_EQ(judgement.verdict, Verdict::suspect);
  EXPECT_EQ(judgement.reason, "in this session, the first that is judged");
  EXPECT_EQ(*judgement.since_s, 18 * kDayS);
}

/// Two levels, the slower one on every fifth night.
std::vector<Night> nights_of_two_levels() {
  std::vector<Night> nights = steady_nights(60);
  for (std::size_t i = 0; i < nights.size(); i += 5) nights[i].value *= 1.08;
  return nights;
}

TEST(Nights, OfTwoLevelsAreUnstableAtThemAndBetween) {
  std::vector<Night> nights = nights_of_two_levels();
  for (const double value : {1000, 1040, 1085}) {
    const NightJudgement judgement = next(nights, value);
    EXPECT_EQ(judgement.verdict, Verdict::unstable) << value;
    EXPECT_THAT(judgement.reason, HasSubstr("the sessions before have two levels, 8.")) << value;
  }
}

TEST(Nights, BeyondTheWorseOfTwoLevelsAreSlower) {
  std::vector<Night> nights = nights_of_two_levels();
  for (const Verdict expected :
       {Verdict::suspect, Verdict::suspect, Verdict::slower, Verdict::slower}) {
    const NightJudgement judgement = next(nights, 1200);
    EXPECT_EQ(judgement.verdict, expected);
    EXPECT_NEAR(*judgement.baseline, 1085, 2) << "the worse level is what it was compared with";
  }
}

TEST(Nights, CreepIsFoundThoughNoNightIsFarFromThoseBefore) {
  std::vector<Night> nights = steady_nights(40);
  const double noise[] = {0, 8, -8, 16, -16};  // so that the night before never differs much
  NightJudgement judgement;
  int night = 0;
  for (; night < 200 && judgement.verdict != Verdict::slower; ++night)
    judgement = next(nights, 1005 + 0.5 * night + noise[night % 5]);
  EXPECT_GT(night, 80);
  EXPECT_LT(night, 140);
  EXPECT_THAT(judgement.reason, HasSubstr("worse than what the level began with"));
  EXPECT_NEAR(*judgement.baseline, 1005, 1);
  EXPECT_GT(*judgement.change, 0.05);
}

/// Of a level that began with 1000, and has come to 1035 little by little.
std::vector<Night> crept_nights() {
  std::vector<Night> nights = steady_nights(60);
  for (Night& night : nights) night.value += 30;
  nights.back().anchor = 1000;
  return nights;
}

TEST(Nights, CreepIsFivePercentInTheMedianOfSevenAndInThisOne) {
  std::vector<Night> nights = crept_nights();
  for (int i = 0; i < 7; ++i) EXPECT_EQ(next(nights, 1049).verdict, Verdict::same);
  nights = crept_nights();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(nights, 1051).verdict, Verdict::same) << i;
  const NightJudgement fourth = next(nights, 1051);
  EXPECT_EQ(fourth.verdict, Verdict::slower);
  EXPECT_THAT(fourth.reason,
              HasSubstr("the median of 7 sessions is 5.1 % worse than what the level began with"));
  EXPECT_EQ(next(nights, 1049).verdict, Verdict::same) << "though the median is still beyond";
}

TEST(Nights, TenFasterOnesAreTheLevelAndItsLossIsFound) {
  std::vector<Night> nights = steady_nights(60);
  for (int i = 0; i < 9; ++i) {
    // One of ten may be no hit.
    const NightJudgement judgement = next(nights, i == 4 ? 990 : 900);
    EXPECT_EQ(judgement.level_since_s, 0) << i;
  }
  const NightJudgement tenth = next(nights, 900);
  EXPECT_EQ(tenth.verdict, Verdict::faster);
  EXPECT_EQ(tenth.reason, "in 9 of 10 sessions: from now on they are the baseline");
  EXPECT_EQ(tenth.level_since_s, 60 * kDayS);
  EXPECT_NEAR(*tenth.anchor, 900, 1);
  EXPECT_EQ(next(nights, 902).verdict, Verdict::same);
  EXPECT_EQ(next(nights, 1005).verdict, Verdict::suspect);
  EXPECT_EQ(next(nights, 1005).verdict, Verdict::suspect);
  const NightJudgement lost = next(nights, 1005);
  EXPECT_EQ(lost.verdict, Verdict::slower);
  EXPECT_NEAR(*lost.change, 1005.0 / 900 - 1, 0.005);
}

// Fewer series than the table of docs/definitions.md has, so the limits are wider.
TEST(Characteristics, LieWithinTheirLimits) {
  constexpr int kSeries = 100;
  std::uint64_t seed = 1000;
  for (const NightKind& kind : kinds_without_change()) {
    const Characteristics found = characteristics_of(kind, kSeries, ++seed);
    EXPECT_LE(found.slower, 1.5 * kind.most_false_alarms + 0.001) << kind.name;
  }
  for (const NightKind& kind : kinds_with_change()) {
    const Characteristics found = characteristics_of(kind, kSeries, ++seed);
    for (std::size_t i = 0; i < kind.found.size(); ++i)
      EXPECT_GE(found.found[i], kind.found[i].least - 0.1)
          << kind.name << ", " << kind.found[i].name;
  }
}

// --- How often the rule is wrong ---

enum class Noise { independent, heavy_tailed, autocorrelated, bimodal };
constexpr const char* kNoiseNames[] = {"independent 2 %",
                                       "heavy-tailed",
                                       "autocorrelated",
                                       "bimodal"};

constexpr int kNights = 120, kRuns = 3, kSamples = 30;

/// One simulated series: the samples of each night, process by process. Of peers, which know no
/// processes, each sees the samples of the first.
std::vector<std::vector<double>> simulate(Noise noise, std::mt19937_64& random) {
  Normal normal;
  std::vector<std::vector<double>> nights;
  double before = 0.02 * normal(random);
  for (int i = 0; i < kNights; ++i) {
    double level = 0;
    switch (noise) {
      case Noise::independent:
        level = 0.02 * normal(random);
        break;
      case Noise::heavy_tailed:
        level = 0.01 * normal(random);
        if (uniform(random) < 0.04) level += std::log(1.05 + 0.12 * uniform(random));
        break;
      case Noise::autocorrelated:
        level = before = 0.7 * before + 0.02 * std::sqrt(1 - 0.49) * normal(random);
        break;
      case Noise::bimodal:
        level = 0.01 * normal(random) + (uniform(random) < 0.2 ? std::log(1.06) : 0);
        break;
    }
    std::vector<double>& samples = nights.emplace_back();
    for (int k = 0; k < kRuns * kSamples; ++k) {
      const double outlier = uniform(random) < 0.02 ? 1.5 : 1;
      samples.push_back(1000 * std::exp(level + 0.03 * normal(random)) * outlier);
    }
  }
  return nights;
}

/// As `check` has it: of the processes' medians.
double value_of(const std::vector<double>& night) {
  std::vector<double> medians;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = night.begin() + std::ptrdiff_t{run} * kSamples;
    medians.push_back(*stats::median({begin, begin + kSamples}));
  }
  return *stats::median(medians);
}

std::span<const double> first_run(const std::vector<double>& night) {
  return std::span(night).first(kSamples);
}

/// A rule sees the nights up to one, and says whether that one is slower.
using Rule = std::function<bool(const std::vector<std::vector<double>>& nights, int night)>;

/// Google Benchmark's compare.py: Mann and Whitney's U, two-sided, 5 %, against the night before.
bool google_benchmark(const std::vector<std::vector<double>>& nights, int night) {
  const auto a = first_run(nights[night - 1]), b = first_run(nights[night]);
  double u = 0;
  for (const double x : a) {
    for (const double y : b) u += y > x;
  }
  const double n = kSamples;
  const double z = (u - n * n / 2) / std::sqrt(n * n * (2 * n + 1) / 12);
  return z > 1.96;
}

/// nvbench_compare.py: means that differ by more than the smaller standard deviation.
bool nvbench(const std::vector<std::vector<double>>& nights, int night) {
  const auto a = first_run(nights[night - 1]), b = first_run(nights[night]);
  return *stats::mean(b) - *stats::mean(a) >
         std::min(*stats::standard_deviation(a), *stats::standard_deviation(b));
}

bool five_percent(const std::vector<std::vector<double>>& nights, int night) {
  return value_of(nights[night]) > 1.05 * value_of(nights[night - 1]);
}

struct Figures {
  double false_alarms = 0;  // per night, in percent
  double found[3] = {};     // of +3, +5 and +10 %, in percent
};
constexpr double kSlowdowns[] = {1.03, 1.05, 1.10};
constexpr int kShiftAt = 70, kWithin = 5;

std::vector<std::vector<double>> slowed(std::vector<std::vector<double>> nights, double factor) {
  for (int night = kShiftAt; night < kShiftAt + kWithin; ++night) {
    for (double& sample : nights[night]) sample *= factor;
  }
  return nights;
}

/// The rule of `check`, with the history that it keeps.
class Check {
 public:
  bool operator()(const std::vector<std::vector<double>>& nights, int night) {
    while (static_cast<int>(history_.size()) <= night) {
      const int at = static_cast<int>(history_.size());
      Night now;
      now.begin_s = at * kDayS;
      now.value = value_of(nights[at]);
      last_ = judge_night(history_, now, Direction::lower_is_better);
      remember(last_, now);
      history_.push_back(now);
    }
    return last_.verdict == Verdict::slower;
  }
  Verdict last() const { return last_.verdict; }

 private:
  std::vector<Night> history_;
  NightJudgement last_;
};

/// `rule` is copied for each series.
Figures figures_of(Noise noise, const Rule& rule, int series) {
  std::mt19937_64 random(static_cast<std::uint64_t>(noise) + 1);
  Figures figures;
  int alarms = 0;
  for (int s = 0; s < series; ++s) {
    const auto nights = simulate(noise, random);
    Rule of_series = rule, at_shift;
    for (int night = 1; night < kNights; ++night) {
      if (night == kShiftAt) at_shift = of_series;
      const bool alarm = of_series(nights, night);
      alarms += alarm && night >= static_cast<int>(kFewestNights);
    }
    for (int i = 0; i < 3; ++i) {
      const auto slower = slowed(nights, kSlowdowns[i]);
      Rule of_slower = at_shift;
      bool found = false;
      for (int night = kShiftAt; night < kShiftAt + kWithin; ++night)
        found = of_slower(slower, night) || found;
      figures.found[i] += 100.0 * found / series;
    }
  }
  figures.false_alarms = 100.0 * alarms / (series * (kNights - static_cast<int>(kFewestNights)));
  return figures;
}

double unstable_at_60(Noise noise, int series) {
  std::mt19937_64 random(static_cast<std::uint64_t>(noise) + 1);
  int unstable = 0;
  for (int s = 0; s < series; ++s) {
    const auto nights = simulate(noise, random);
    Check check;
    check(nights, 60);
    unstable += check.last() == Verdict::unstable;
  }
  return 100.0 * unstable / series;
}

TEST(Nights, RarelyRaiseAFalseAlarmAndFindWhatLasts) {
  constexpr int kSeries = 400, kSeriesOfPeers = 100;
  const auto print = [](const char* rule, Noise noise, const Figures& figures) {
    fmt::print("{:38}{:>18}: false alarms {:.2f} %, of +3, +5 and +10 % found {:.0f} %\n",
               rule,
               kNoiseNames[static_cast<int>(noise)],
               figures.false_alarms,
               fmt::join(figures.found, " %, "));
  };
  const std::pair<const char*, Rule> peers[] = {
      {"Google Benchmark compare.py, U test", google_benchmark},
      {"nvbench_compare.py", nvbench},
      {"more than 5 % over the night before", five_percent},
  };
  for (const auto& [name, rule] : peers)
    print(name, Noise::independent, figures_of(Noise::independent, rule, kSeriesOfPeers));
  const struct {
    Noise noise;
    // What wanders is beyond its anchor at times: that drift is found costs this.
    double most_false_alarms, least_found_of_10, least_unstable, most_unstable;
  } limits[] = {
      {Noise::independent, 0.1, 90, 0, 2},
      {Noise::heavy_tailed, 0.1, 0, 0, 8},
      {Noise::autocorrelated, 0.4, 0, 0, 2},
      {Noise::bimodal, 0.1, 0, 90, 100},
  };
  for (const auto& limit : limits) {
    const Figures figures = figures_of(limit.noise, Check(), kSeries);
    print("launchgap check", limit.noise, figures);
    EXPECT_LE(figures.false_alarms, limit.most_false_alarms);
    EXPECT_GE(figures.found[2], limit.least_found_of_10);
    const double unstable = unstable_at_60(limit.noise, kSeries);
    fmt::print("  called unstable in night 60: {:.1f} % of the series\n", unstable);
    EXPECT_GE(unstable, limit.least_unstable);
    EXPECT_LE(unstable, limit.most_unstable);
  }
}

}  // namespace
}  // namespace launchgap::rules
