#include "harness/summary/run_factors.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

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
  EXPECT_EQ(name_of(found[0].verdict()), "explains");
  EXPECT_EQ(found[0].slow, "9");
  EXPECT_EQ(found[0].fast, "1");
  for (std::size_t i = 1; i < found.size(); ++i)
    EXPECT_EQ(name_of(found[i].verdict()), "may-be-chance");
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
      named += factor.verdict() != rules::FactorVerdict::may_be_chance;
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
