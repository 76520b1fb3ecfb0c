#include "harness/rules/paired.h"

#include <cmath>
#include <cstdio>
#include <random>

#include <gmock/gmock.h>

#include "tests/random.h"

namespace launchgap::rules {
namespace {

/// Logarithms with this mean, half of them `spread` above it and half as much below.
std::vector<double> around(double mean, double spread, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(mean + (i % 2 ? spread : -spread));
  return values;
}

TEST(PairedRule, JudgesALevel) {
  const struct {
    const char* what;
    std::vector<double> log_ratios;
    double sign, minimum;
    Verdict verdict;
  } rows[] = {
      {"all equal", around(0, 0, 8), 1, 0.02, Verdict::same},
      {"larger by 5 %", around(0.05, 0.01, 8), 1, 0.02, Verdict::slower},
      {"smaller by 5 %", around(-0.05, 0.01, 8), 1, 0.02, Verdict::faster},
      {"larger, which is better", around(0.05, 0.01, 8), -1, 0.02, Verdict::faster},
      {"smaller, which is worse", around(-0.05, 0.01, 8), -1, 0.02, Verdict::slower},
      {"certain, but below the minimum", around(0.019, 0.001, 8), 1, 0.02, Verdict::same},
      {"just above the minimum", around(0.0199, 0.001, 8), 1, 0.02, Verdict::slower},
      {"below a larger minimum", around(0.05, 0.01, 8), 1, 0.06, Verdict::same},
      {"far, but uncertain", around(0.05, 0.05, 8), 1, 0.02, Verdict::cannot_tell},
      {"not far, and uncertain", around(0.019, 0.028, 8), 1, 0.02, Verdict::same},
      {"without any spread", around(0.03, 0, 8), 1, 0.02, Verdict::slower},
      {"too few", around(0.05, 0.001, 7), 1, 0.02, Verdict::invalid},
      {"one", around(0.05, 0, 1), 1, 0.02, Verdict::invalid},
      {"none", {}, 1, 0.02, Verdict::invalid},
  };
  for (const auto& row : rows) {
    const PairedVerdict found =
        PairedRule(kLeastPairs, row.sign, row.minimum).judge(row.log_ratios, true);
    EXPECT_EQ(found.verdict, row.verdict) << row.what;
    EXPECT_TRUE(found.decided) << row.what;
    EXPECT_EQ(!found.reason.empty(),
              row.verdict == Verdict::invalid || row.verdict == Verdict::cannot_tell)
        << row.what;
  }
  EXPECT_EQ(PairedRule(8, 1, 0.02).judge(around(0, 0, 1), true).reason,
            "1 usable pair, and a verdict needs 8");
}

TEST(PairedRule, HasStudentsInterval) {
  // scipy.stats.ttest_1samp(x, 0).confidence_interval(0.99)
  const std::vector<double> x = {0.03, 0.01, 0.02, 0.05, 0.04, 0.02, 0.03, 0.06};
  const PairedVerdict found = PairedRule(8, 1, 0.02).judge(x, true);
  EXPECT_NEAR(found.mean, 0.0325, 1e-12);
  EXPECT_NEAR(found.interval.low, 0.011849659493706487, 1e-9);
  EXPECT_NEAR(found.interval.high, 0.05315034050629351, 1e-9);
}

TEST(PairedRule, LooksAgainWhileMoreArePlanned) {
  const PairedRule rule(14, 1, 0.02);
  EXPECT_EQ(rule.looks(), 3u);  // 8, 12, 14
  const auto decided = [&](const std::vector<double>& values) {
    const PairedVerdict found = rule.judge(values, false);
    return found.decided ? static_cast<int>(found.pairs) : 0;
  };
  EXPECT_EQ(decided(around(0.05, 0.001, 7)), 0);
  EXPECT_EQ(decided(around(0.05, 0.001, 8)), 8);   // slower
  EXPECT_EQ(decided(around(0.05, 0.001, 11)), 8);  // what came later does not count
  EXPECT_EQ(decided(around(0, 0.001, 8)), 8);      // the same, and surely
  EXPECT_EQ(decided(around(0.015, 0.02, 8)), 0);   // neither
  EXPECT_EQ(decided(around(0.015, 0.02, 13)), 0);
  EXPECT_EQ(decided(around(0.015, 0.02, 14)), 14);  // at the last look there is a verdict
  // More planned pairs ask for more certainty at each look.
  const auto width = [](const PairedVerdict& found) {
    return found.interval.high - found.interval.low;
  };
  EXPECT_GT(width(rule.judge(around(0, 0.01, 8), false)),
            width(PairedRule(8, 1, 0.02).judge(around(0, 0.01, 8), true)));
}

TEST(PairedRule, JudgesWhatThereIsWhenItEndsEarly) {
  const PairedRule rule(16, 1, 0.02);
  EXPECT_EQ(rule.judge(around(0.03, 0.03, 10), true).pairs, 10u);
  EXPECT_EQ(rule.judge(around(0.03, 0.03, 8), true).verdict, Verdict::cannot_tell);
  EXPECT_EQ(rule.judge(around(0.03, 0.03, 7), true).verdict, Verdict::invalid);
  EXPECT_FALSE(rule.judge(around(0.03, 0.03, 7), false).decided);
}

/// Eight processes of each side with these measures; every second one is 10 % off.
std::vector<ProcessSpread> processes(double median_spread, double cv, double tail, int modes) {
  std::vector<ProcessSpread> made;
  for (int i = 0; i < 8; ++i) {
    const double off = i % 2 ? 1.1 : 1;
    made.push_back(
        {100 * std::exp(i % 2 ? median_spread : -median_spread), cv * off, 1 + tail * off, modes});
  }
  return made;
}

TEST(Spread, IsJudged) {
  const auto usual = processes(0.01, 0.02, 1, 1);
  struct Row {
    std::vector<ProcessSpread> a, b;
    const char* expected;
  };
  auto without = usual;
  for (ProcessSpread& process : without) process = {process.median, {}, {}, {}};
  auto few = processes(0.01, 0.2, 1, 1);
  few.front().cv.reset();
  auto more = usual;
  more.push_back(usual.front());
  auto constant_once = more, noisy = processes(0.01, 0.042, 1, 1);
  constant_once.front().cv = 0;
  noisy.push_back(noisy.front());
  const Row rows[] = {
      {usual, usual, "same"},
      {usual, processes(0.01, 0.042, 1, 1), "erratic: within-run CV 2.1 times as large"},
      {processes(0.01, 0.04, 1, 1), usual, "steadier: within-run CV 0.5 times as large"},
      {usual, processes(0.01, 0.029, 1, 1), "same"},
      {usual, processes(0.01, 0.02, 5, 1), "erratic: p99/p50 3.0 times as large"},
      {usual, processes(0.04, 0.02, 1, 1), "erratic: between-run CV 4.0 times as large"},
      {usual, processes(0.025, 0.02, 1, 1), "same"},
      {processes(0.0001, 0.02, 1, 1), processes(0.005, 0.02, 1, 1), "same"},  // hardly vary
      {processes(0.01, 0.001, 1, 1), processes(0.01, 0.005, 1, 1), "same"},   // a small CV
      {usual, processes(0.01, 0.02, 1, 2), "erratic: 2.0 modes within a run, where A has 1.0"},
      // Erratic in one, steadier in another.
      {usual, processes(0.01, 0.005, 5, 1), "erratic: p99/p50 3.0 times as large"},
      {without, without, "same"},
      {usual, few, "same"},  // known of seven pairs
      {usual, more, "same"},
      {constant_once, noisy, "erratic: within-run CV 2.1 times as large"},  // of eight pairs
      {processes(0, 0.02, 1, 1), processes(0, 0.02, 1, 1), "same"},         // nothing varies
      {{}, {}, "same"},
  };
  for (const Row& row : rows) {
    const SpreadVerdict found = judge_spread(row.a, row.b);
    EXPECT_EQ(
        std::string(name_of(found.steadiness)) + (found.reason.empty() ? "" : ": " + found.reason),
        row.expected)
        << &row - rows;
  }
}

/// Comparisons of processes whose medians vary log-normally; the pairs come one after the other.
class Simulation {
 public:
  Simulation(double noise, double slowdown, std::size_t planned, double minimum = kPairedShare)
      : noise_(noise), slowdown_(slowdown), rule_(planned, 1, minimum), planned_(planned) {}

  int count_slower(int comparisons) {
    int slower = 0;
    for (int i = 0; i < comparisons; ++i) slower += compare() == Verdict::slower;
    return slower;
  }
  double pairs_used() const { return used_ / comparisons_; }

 private:
  Verdict compare() {
    std::vector<double> log_ratios;
    PairedVerdict found;
    while (!found.decided) {
      const double a = noise_ * normal_(random_);
      log_ratios.push_back(std::log1p(slowdown_) + noise_ * normal_(random_) - a);
      found = rule_.judge(log_ratios, log_ratios.size() == planned_);
    }
    used_ += static_cast<double>(log_ratios.size());
    ++comparisons_;
    return found.verdict;
  }

  double noise_, slowdown_;
  PairedRule rule_;
  std::size_t planned_;
  std::mt19937_64 random_{20261122};
  Normal normal_;
  double used_ = 0, comparisons_ = 0;
};

TEST(PairedRule, KeepsItsErrorRateAndFindsSlowdowns) {
  constexpr int kComparisons = 4000;
  // The 99 % binomial bound of 0.5 % of 4,000.
  constexpr int kMostAlarms = 30;
  std::puts(
      "pairs  noise  alarms of 4000  found of 4000: +3 %  +5 %  +10 %  pairs used at +0, +5 %");
  for (const std::size_t planned : {8u, 16u, 24u}) {
    for (const double noise : {0.005, 0.01, 0.02}) {
      Simulation none(noise, 0, planned), three(noise, 0.03, planned), five(noise, 0.05, planned),
          ten(noise, 0.10, planned);
      const int alarms = none.count_slower(kComparisons), of_3 = three.count_slower(kComparisons),
                of_5 = five.count_slower(kComparisons), of_10 = ten.count_slower(kComparisons);
      std::printf("%5zu  %3.1f %%  %14d  %20d  %4d  %5d  %17.1f  %4.1f\n",
                  planned,
                  100 * noise,
                  alarms,
                  of_3,
                  of_5,
                  of_10,
                  none.pairs_used(),
                  five.pairs_used());
      EXPECT_LE(alarms, kMostAlarms) << planned << " pairs, noise " << noise;
      if (noise > 0.01) continue;
      EXPECT_GE(of_5, 0.95 * kComparisons) << planned << " pairs, noise " << noise;
      EXPECT_GE(of_3, 0.80 * kComparisons) << planned << " pairs, noise " << noise;
    }
  }
}

/// The interval alone, without a minimum that would hide what it does.
TEST(PairedRule, KeepsItsErrorRateOverSeveralLooks) {
  constexpr int kComparisons = 4000;
  constexpr int kMostAlarms = 30, kLeastAlarms = 3;
  for (const std::size_t planned : {8u, 12u, 16u, 40u}) {
    Simulation none(0.01, 0, planned, 1e-12);
    const int alarms = none.count_slower(kComparisons);
    std::printf("%zu pairs without a minimum: %d alarms of %d\n", planned, alarms, kComparisons);
    EXPECT_LE(alarms, kMostAlarms) << planned;
    EXPECT_GE(alarms, kLeastAlarms) << planned << ": the rule says nothing";
  }
}

/// Of equal processes few may be called erratic or steadier.
TEST(Spread, SeldomErrs) {
  constexpr int kComparisons = 4000;
  std::mt19937_64 random(20261122);
  Normal normal;
  const auto process = [&] {
    return ProcessSpread{std::exp(0.01 * normal(random)),
                         0.02 * std::exp(0.3 * normal(random)),
                         1.2 * std::exp(0.1 * normal(random)),
                         normal(random) > 1 ? 2 : 1};
  };
  int erratic = 0, steadier = 0;
  for (int i = 0; i < kComparisons; ++i) {
    std::vector<ProcessSpread> a, b;
    for (std::size_t pair = 0; pair < kLeastPairs; ++pair) {
      a.push_back(process());
      b.push_back(process());
    }
    const Steadiness found = judge_spread(a, b).steadiness;
    erratic += found == Steadiness::erratic;
    steadier += found == Steadiness::steadier;
  }
  std::printf("erratic %d, steadier %d of %d\n", erratic, steadier, kComparisons);
  EXPECT_LE(erratic, 40);
  EXPECT_LE(steadier, 40);
}

}  // namespace
}  // namespace launchgap::rules
