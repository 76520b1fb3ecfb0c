#include "harness/stats/padding_gains.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tests/random.h"

namespace launchgap::stats {
namespace {

using namespace testing;
using Series = std::vector<SizeTimes>;

/// Of published rates of square products, the times: size³ / rate.
Series published(const std::string& gpu, const std::string& type) {
  std::ifstream in(LAUNCHGAP_SOURCE_FOLDER "/data/published_sweeps.csv");
  Series series;
  for (std::string line; std::getline(in, line);) {
    std::stringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.at(0) != gpu || !row.at(2).ends_with("/type:" + type)) continue;
    const double size = std::stod(row.at(2).substr(row.at(2).find(':') + 1));
    series.push_back({size, {size * size * size / std::stod(row.at(5))}});
  }
  return series;
}

double gain_at(const std::vector<PaddingGain>& gains, const Series& series, double size) {
  for (const PaddingGain& row : gains) {
    if (series[row.size].size == size) return row.gain;
  }
  return std::nan("");
}

TEST(PaddingGains, OfSevenPublishedPoints) {
  const Series series = published("GeForce RTX 4090", "bf16");
  ASSERT_EQ(series.size(), 7u);
  const std::vector<PaddingGain> gains = padding_gains(series);
  EXPECT_NEAR(gain_at(gains, series, 2056), 1.22, 0.005);
  EXPECT_NEAR(gain_at(gains, series, 2072), 1.34, 0.005);
  for (const double size : {2040, 2055, 2057, 2071, 2073})
    EXPECT_LT(gain_at(gains, series, size), 1.05) << size;
  for (const PaddingGain& row : gains) {
    EXPECT_FALSE(row.interval || row.judged || row.cliff) << "one value per size has no verdict";
  }
}

TEST(PaddingGains, OfA40sProductsAreThirtyNine) {
  const Series series = published("Tesla K40", "fp32");
  ASSERT_EQ(series.size(), 720u);
  std::vector<int> above;
  double worst = 0;
  for (const PaddingGain& row : padding_gains(series)) {
    if (row.gain > kLeastGain) above.push_back(static_cast<int>(series[row.size].size));
    if (row.gain <= worst) continue;
    worst = row.gain;
    EXPECT_LE(series[row.pad_to].size, kMostPadding * series[row.size].size);
  }
  EXPECT_NEAR(worst, 1.19, 0.005);
  EXPECT_EQ(
      fmt::format("{}", fmt::join(above, " ")),
      "584 592 600 608 616 624 632 880 888 928 936 944 952 1144 1224 1232 1240 1248 1256 1264 1272 "
      "1912 4328 4344 4392 4408 4552 4560 4568 4584 4592 4600 4792 5320 5328 5336 5352 5360 5368");
}

TEST(PaddingGains, OfNothingOneSizeOrEqualTimes) {
  EXPECT_THAT(padding_gains({}), IsEmpty());
  EXPECT_THAT(padding_gains(Series{{16, {}}}), IsEmpty());
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(padding_gains(Series{{16, {none, 0, -1}}, {0, {1}}}), IsEmpty());
  for (const std::size_t processes : {1u, 10u}) {
    Series equal;
    for (int i = 0; i < 5; ++i) equal.push_back({100.0 + i, std::vector<double>(processes, 7)});
    for (const PaddingGain& row : padding_gains(equal)) {
      EXPECT_EQ(row.gain, 1);
      EXPECT_EQ(row.pad_to, row.size);
      EXPECT_FALSE(row.cliff);
    }
    EXPECT_EQ(padding_gains(Series{{16, std::vector<double>(processes, 7)}}).size(), 1u);
  }
}

TEST(PaddingGains, SizesMayStandInAnyOrder) {
  const Series series = {{110, {5}}, {100, {10}}, {130, {1}}};
  const std::vector<PaddingGain> gains = padding_gains(series);
  ASSERT_EQ(gains.size(), 3u);
  EXPECT_EQ(series[gains[0].size].size, 100);
  EXPECT_EQ(series[gains[0].pad_to].size, 110) << "130 is more than a quarter above";
  EXPECT_EQ(gains[0].gain, 2);
  EXPECT_EQ(gains[1].gain, 5);
}

TEST(PaddingGains, ASizeThatLacksAProcessHasNoVerdict) {
  Series series;
  for (int i = 0; i < 6; ++i)
    series.push_back({100.0 + i, std::vector<double>(10, 1.0 + 1e-3 * i)});
  for (double& time : series[2].times) time *= 2;
  ASSERT_TRUE(padding_gains(series)[2].cliff);
  series[2].times[4] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<PaddingGain> gains = padding_gains(series);
  EXPECT_FALSE(gains[2].interval || gains[2].judged || gains[2].cliff);
  EXPECT_NEAR(gains[2].gain, 2, 0.01);
  EXPECT_TRUE(gains[1].judged);
}

TEST(PaddingGains, AProcessThatLacksSizesIsLeftOutWhereTenOthersHaveAll) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  Series series;
  for (int i = 0; i < 6; ++i) series.push_back({100.0 + i, std::vector<double>(12, 1)});
  series[2].times.assign(12, 2);
  for (const std::size_t i : {2u, 3u, 5u}) series[i].times[4] = none;
  for (const PaddingGain& row : padding_gains(series)) {
    EXPECT_TRUE(row.judged) << row.size;
    EXPECT_EQ(row.cliff, row.size == 2) << row.size;
  }
  for (SizeTimes& size : series) size.times[7] = none;
  EXPECT_TRUE(padding_gains(series)[2].cliff) << "ten are left";
  series[3].times[0] = none;
  const std::vector<PaddingGain> gains = padding_gains(series);
  EXPECT_FALSE(gains[2].judged || gains[3].judged || gains[5].judged) << "nine are left";
  EXPECT_TRUE(gains[0].judged && gains[1].judged && gains[4].judged) << "eleven have these";
}

TEST(PaddingGains, PadsToTheNearestThatIsAsGood) {
  const auto series_of =
      [](const std::vector<double>& levels, std::size_t processes, double spread) {
        Series series;
        for (std::size_t i = 0; i < levels.size(); ++i) {
          SizeTimes size{100 + static_cast<double>(i), {}};
          for (std::size_t p = 0; p < processes; ++p)
            size.times.push_back(levels[i] * (1 + spread * static_cast<double>((3 * p + i) % 5)));
          series.push_back(std::move(size));
        }
        return series;
      };
  const std::vector<double> by_less_than_one_percent = {1.2, 1.1, 1.004, 1.003, 1, 1.1};
  EXPECT_EQ(padding_gains(series_of(by_less_than_one_percent, 1, 0))[0].pad_to, 4u)
      << "of one value per size the least";
  for (const std::size_t processes : {3u, 10u}) {
    EXPECT_EQ(padding_gains(series_of(by_less_than_one_percent, processes, 1e-5))[0].pad_to, 2u)
        << processes;
  }
  const std::vector<double> by_two_percent = {1.3, 1.2, 1.02, 1.02, 1, 1.1};
  EXPECT_EQ(padding_gains(series_of(by_two_percent, 10, 1e-5))[0].pad_to, 4u);
  EXPECT_EQ(padding_gains(series_of(by_two_percent, 10, 0.03))[0].pad_to, 2u) << "is within noise";
}

// How often the verdict errs, by series with a fixed seed: 49 sizes, 10 processes, 3 % between
// them.

/// What a series is made of: the time of a size, and how much the values of sizes and processes
/// vary beside.
struct Kind {
  const char* name;
  double exponent;  // time = size^exponent
  double step;
  bool some_vary = false;      // a fifth of the sizes by 8 %
  bool some_are_slow = false;  // 5 % of the processes, by 10 to 50 %
  int found = 190;             // of 200, at least
};

constexpr int kSizes = 49, kProcesses = 10, kSeries = 200;

/// LAUNCHGAP_SERIES=4000 makes docs/definitions.md's table.
int series_of_each_kind() {
  const char* const asked = std::getenv("LAUNCHGAP_SERIES");
  return asked ? std::max(kSeries, std::atoi(asked)) : kSeries;
}

Series made(const Kind& kind, std::mt19937_64& random, std::optional<int> slow_size) {
  Normal normal;
  std::vector<double> process(kProcesses, 1);
  for (double& factor : process) {
    if (kind.some_are_slow && uniform(random) < 0.05) factor = 1.1 + 0.4 * uniform(random);
  }
  Series series;
  for (int i = 0; i < kSizes; ++i) {
    SizeTimes size{1024 + kind.step * i, {}};
    const double spread = kind.some_vary && uniform(random) < 0.2 ? 0.08 : 0.03;
    for (const double factor : process) {
      size.times.push_back(std::pow(size.size, kind.exponent) * factor *
                           std::exp(spread * normal(random)) * (slow_size == i ? 1.15 : 1));
    }
    series.push_back(std::move(size));
  }
  return series;
}

class PaddingGainsOf : public TestWithParam<Kind> {};

TEST_P(PaddingGainsOf, SeldomErr) {
  std::mt19937_64 random(2026);
  const int count = series_of_each_kind();
  int with_a_cliff = 0, found = 0, wrong = 0;
  for (int i = 0; i < count; ++i) {
    const Series smooth = made(GetParam(), random, std::nullopt);
    const std::vector<PaddingGain> gains = padding_gains(smooth);
    with_a_cliff += std::ranges::any_of(gains, &PaddingGain::cliff);
    wrong += std::ranges::any_of(gains, [&](const PaddingGain& row) {
      const double truth =
          std::pow(smooth[row.size].size / smooth[row.pad_to].size, GetParam().exponent);
      return row.interval && (truth < row.interval->low || truth > row.interval->high);
    });
    const int slow = 5 + static_cast<int>(random() % (kSizes - 10));
    const Series series = made(GetParam(), random, slow);
    found += padding_gains(series)[static_cast<std::size_t>(slow)].cliff;
  }
  EXPECT_LE(with_a_cliff, 4 * count / kSeries);
  EXPECT_LE(wrong, 4 * count / kSeries) << "series with a gain outside its interval";
  EXPECT_GE(found, GetParam().found * count / kSeries);
  std::cout << count << " series: " << with_a_cliff << " with a cliff that is none, " << found
            << " times the slow size found, " << wrong << " with a gain outside its interval\n";
}

/// exp(mean of all but the least and the largest of ten differences of logarithms).
double paired_ratio(const SizeTimes& size, const SizeTimes& pad_to) {
  std::vector<double> differences;
  for (std::size_t p = 0; p < size.times.size(); ++p)
    differences.push_back(std::log(size.times[p] / pad_to.times[p]));
  std::ranges::sort(differences);
  return std::exp(std::accumulate(differences.begin() + 1, differences.end() - 1, 0.0) / 8);
}

TEST_P(PaddingGainsOf, AreTheRatiosToTheNamedSizesAndWithinTheirIntervals) {
  std::mt19937_64 random(11);
  int padded = 0;
  for (int i = 0; i < 20; ++i) {
    const Series series = made(GetParam(), random, 20);
    for (const PaddingGain& row : padding_gains(series)) {
      EXPECT_TRUE(row.judged);
      ASSERT_EQ(row.interval.has_value(), row.pad_to != row.size) << "nothing to gain, no interval";
      if (!row.interval) {
        EXPECT_EQ(row.gain, 1);
        EXPECT_FALSE(row.cliff);
        continue;
      }
      ++padded;
      EXPECT_NEAR(row.gain, paired_ratio(series[row.size], series[row.pad_to]), 1e-9);
      EXPECT_LE(row.interval->low, row.gain);
      EXPECT_GE(row.interval->high, row.gain);
    }
  }
  EXPECT_GE(padded, 20);
}

INSTANTIATE_TEST_SUITE_P(Series,
                         PaddingGainsOf,
                         Values(Kind{"flat", 0, 1},
                                Kind{"smooth", 3, 1},
                                Kind{"smooth_by_8", 2, 8},
                                Kind{"some_sizes_vary", 2, 1, true, false, 180},
                                Kind{"some_processes_are_slow", 2, 1, false, true, 180}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace launchgap::stats
