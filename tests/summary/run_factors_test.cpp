#include "harness/summary/run_factors.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

// By scipy.stats.f_oneway and pearsonr.
TEST(Explained, AgreesWithScipy) {
  const std::vector<double> logs = {1.0, 1.1, 0.9, 2.0, 2.2, 1.9, 1.05, 2.1};
  const auto groups = explained(logs, {{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"b"}, {"a"}, {"b"}});
  ASSERT_TRUE(groups);
  EXPECT_NEAR(groups->variance_share, 0.9676921, 1e-6);
  EXPECT_NEAR(groups->chance, 1.0668656e-05, 1e-10);
  const auto numbers = explained(
      logs, {{"", 1}, {"", 2}, {"", 1.5}, {"", 4}, {"", 3}, {"", 3.5}, {"", 2.5}, {"", 5}});
  ASSERT_TRUE(numbers);
  EXPECT_NEAR(numbers->variance_share, 0.7209205, 1e-6);
  EXPECT_NEAR(numbers->chance, 0.0076517, 1e-6);
}

TEST(Explained, SaysNothingWhereNothingCanBeSaid) {
  const std::vector<double> six = {1, 2, 3, 4, 5, 6};
  const std::vector<FactorValue> halves = {{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"b"}};
  EXPECT_TRUE(explained(six, halves));
  EXPECT_FALSE(explained({1, 2, 3, 4, 5}, {halves.begin(), halves.end() - 1})) << "five runs";
  EXPECT_FALSE(explained(six, std::vector<FactorValue>(6, {"a"}))) << "nothing differs";
  EXPECT_FALSE(explained(six, {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}})) << "each by itself";
  EXPECT_FALSE(explained(std::vector<double>(6, 1), halves)) << "all are as fast";
  EXPECT_FALSE(explained(six, {{"a"}, {"a"}, {""}, {"b"}, {"b"}, {"b"}})) << "one does not tell";
}

/// A session of runs that take `level(run)` ns, on CPUs `cpus(run)`.
template <class Level, class Cpus>
SessionData a_session(int runs, Level&& level, Cpus&& cpus) {
  SessionData session;
  session.devices = {a_device("GPU-1", "Some GPU")};
  CaseData& data = session.cases[{"GPU-1",
                                  "plain",
                                  ProcessConfig("launch"),
                                  CaseName::parse("launch/null/api:driver/mode:idle")}];
  for (int run = 0; run < runs; ++run) {
    RunInfo& info = session.runs.emplace_back();
    info.device = "GPU-1";
    info.arm = "plain";
    info.process_config = ProcessConfig("launch");
    info.replicate = run;
    info.cpus = cpus(run);
    info.begin_ns = 1'000'000'000LL * run;
    data.samples["api_ns"][run] = {level(run)};
  }
  return session;
}

std::vector<SummaryRow> rows_of() {
  return {a_row("GPU-1", "launch/null/api:driver/mode:idle", "api_ns", {1})};
}

TEST(RunFactors, TheCpuThatMakesRunsSlowIsNamed) {
  std::mt19937_64 random(7);
  std::normal_distribution<> noise(0, 0.01);
  const SessionData session = a_session(
      12,
      [&](int run) { return 2000 * std::exp(noise(random) + (run % 3 == 0 ? 0.3 : 0)); },
      [](int run) { return run % 3 == 0 ? "9" : "1"; });
  const auto rows = rows_of();
  const auto found = run_factors(session, rows);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].factor, "cpus");
  EXPECT_EQ(found[0].verdict(), "explains");
  EXPECT_EQ(found[0].slow, "9");
  EXPECT_EQ(found[0].fast, "1");
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_EQ(found[i].verdict(), "may-be-chance");
  EXPECT_EQ(lines_of(table_named("run_factors.csv"), session, rows).size(), found.size());
}

// Of 200 sessions whose runs vary for no reason that is kept, one in a hundred may name one.
TEST(RunFactors, ChanceIsCalledChance) {
  std::mt19937_64 random(7);
  std::normal_distribution<> noise(0, 0.05);
  const auto rows = rows_of();
  int named = 0;
  for (int i = 0; i < 200; ++i) {
    const SessionData session = a_session(
        10,
        [&](int) { return 2000 * std::exp(noise(random)); },
        [&](int) { return random() % 2 ? "9" : "1"; });
    for (const RunFactor& factor : run_factors(session, rows))
      named += factor.verdict() != "may-be-chance";
  }
  EXPECT_LE(named, 6);
}

TEST(RunFactors, RunsThatAreAlikeAreNotAsked) {
  const SessionData session = a_session(
      10, [](int run) { return 2000.0 + run; }, [](int run) { return run % 2 ? "9" : "1"; });
  EXPECT_THAT(run_factors(session, rows_of()), IsEmpty());
}

}  // namespace
}  // namespace launchgap
