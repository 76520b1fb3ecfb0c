#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "harness/regression/selftest.h"
#include "tests/random.h"

namespace launchgap::regression {
namespace {

using namespace testing;

std::vector<double> normal_logs(double noise, std::size_t count, double drift = 0) {
  std::mt19937_64 random(20261122);
  Normal normal;
  std::vector<double> logs;
  for (std::size_t i = 0; i < count; ++i)
    logs.push_back(noise * normal(random) + drift * static_cast<double>(i));
  return logs;
}

TEST(Resampling, FindsTheRateAndTheDetectableSlowdown) {
  struct Row {
    double noise, least, most;  // of what can be detected
  };
  // With 8 pairs, noise s and no minimum 80 % are found of about 1.5 s.
  for (const Row& row : {Row{0.001, 0.02, 0.0225}, Row{0.01, 0.02, 0.035}, Row{0.03, 0.04, 0.1}}) {
    const rules::PairedRule rule(8, 1, rules::kPairedShare);
    const MeasuredPower power = resample(normal_logs(row.noise, 60), rule, 8, 1, 1);
    EXPECT_LE(power.false_alarm_rate, 0.01) << row.noise;
    ASSERT_TRUE(power.detectable) << row.noise;
    EXPECT_THAT(*power.detectable, AllOf(Ge(row.least), Le(row.most))) << row.noise;
  }
}

TEST(Resampling, KnowsWhatCannotBeDetected) {
  const rules::PairedRule rule(8, 1, rules::kPairedShare);
  EXPECT_FALSE(resample(normal_logs(2, 60), rule, 8, 1, 1).detectable);
}

TEST(Resampling, TakesTheDirectionOfTheMetric) {
  const auto logs = normal_logs(0.01, 60);
  const rules::PairedRule larger(8, 1, rules::kPairedShare), smaller(8, -1, rules::kPairedShare);
  EXPECT_NEAR(*resample(logs, larger, 8, 1, 1).detectable,
              *resample(logs, smaller, 8, -1, 1).detectable,
              2 * kDetectableStep);
}

TEST(Resampling, IsNotMisledByADrift) {
  const rules::PairedRule rule(8, 1, rules::kPairedShare);
  const MeasuredPower power = resample(normal_logs(0.002, 60, 0.01), rule, 8, 1, 1);
  EXPECT_LE(power.false_alarm_rate, 0.01);
  EXPECT_LE(*power.detectable, 0.035);
}

TEST(Resampling, FindsTheRateOfErratic) {
  std::mt19937_64 random(20261122);
  Normal normal;
  std::vector<rules::ProcessSpread> processes;
  for (int i = 0; i < 40; ++i) {
    processes.push_back({std::exp(0.01 * normal(random)),
                         0.05 * std::exp(0.2 * normal(random)),
                         std::exp(0.1 * normal(random)),
                         1});
  }
  EXPECT_THAT(resample_erratic(processes, 8, 1), AllOf(Ge(0.001), Le(0.02)));
  EXPECT_EQ(resample_erratic({}, 8, 1), 0);
  // Of two the order is drawn for each pair: all eight are the same way round in 1 of 256.
  const std::vector<rules::ProcessSpread> two = {{1, 0.02, {}, {}}, {1, 0.2, {}, {}}};
  EXPECT_NEAR(resample_erratic(two, 8, 1), 1.0 / 256, 0.002);
  EXPECT_EQ(resample_erratic(std::span(two).first(1), 8, 1), 0);
}

}  // namespace
}  // namespace launchgap::regression
