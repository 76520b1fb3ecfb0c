#include "harness/regression/session_figures.h"

#include <gmock/gmock.h>

namespace launchgap::regression {
namespace {

/// Three processes of one case, with as many samples each, 1 apart.
struct SessionOfACase : testing::Test {
  SessionOfACase() {
    const CaseName name = CaseName::parse("launch/null/api:driver/mode:idle");
    key = {"GPU-1", "plain", name.family(), name};
    session.state = "complete";
    for (int run = 0; run < 3; ++run) {
      add_run(run, 20);
      RunInfo info;
      info.device = key.device;
      info.arm = key.arm;
      info.process_config = key.process_config;
      info.replicate = run;
      session.runs.push_back(info);
    }
  }
  CaseData& of_case() { return session.cases[key]; }
  void add_run(int replicate, int samples) {
    of_case().metric_order = {"api_ns"};
    of_case().outcomes[replicate] = {Status::ok, ""};
    std::vector<double>& values = of_case().samples["api_ns"][replicate];
    values.clear();
    for (int i = 0; i < samples; ++i) values.push_back(1000 + i);
  }
  void add_telemetry(int block, std::int64_t at_ns, std::map<std::string, double> values) {
    session.telemetry.push_back({key.device,
                                 key.arm,
                                 key.process_config,
                                 1,
                                 key.name.text(),
                                 block,
                                 at_ns,
                                 std::move(values)});
  }
  MetricFigures figures() const { return figures_of(session).metrics.at(0); }
  std::string invalid() const { return figures().invalid; }

  CaseKey key;
  SessionData session;
};

TEST_F(SessionOfACase, IsInvalidIfItFailedInAnyRun) {
  EXPECT_EQ(invalid(), "");
  of_case().outcomes[1] = {Status::unsupported, "too little memory"};
  EXPECT_EQ(invalid(), "") << "what a device cannot do is no failure";
  of_case().outcomes[2] = {Status::failed, "it crashed"};
  EXPECT_EQ(invalid(), "failed in run 2: it crashed");
}

TEST_F(SessionOfACase, IsThrottledFromOnePercentOfTheTimeOn) {
  const std::string counter = "held_by_hw_thermal_ns";
  add_telemetry(-1, 0, {{counter, 5e6}});
  add_telemetry(0, 1'000'000'000, {{counter, 5e6 + 0.99e7}});
  EXPECT_EQ(invalid(), "");
  session.telemetry.back().values[counter] = 5e6 + 1e7;
  EXPECT_EQ(invalid(),
            "throttled: heat or a power brake held the clocks down for 1 % of the time (run 1)");
  session.telemetry.back().at_ns += 10'000'000;
  EXPECT_EQ(invalid(), "");
}

TEST_F(SessionOfACase, IsThrottledByAReasonAfterABlock) {
  add_telemetry(-1, 0, {{"clock_reasons", 0x40}});
  EXPECT_EQ(invalid(), "") << "before the first block it may be idle";
  add_telemetry(0, 1000, {{"clock_reasons", 0x4}});
  EXPECT_EQ(invalid(), "") << "the power limit is no throttling";
  add_telemetry(1, 2000, {{"clock_reasons", 0x44}});
  EXPECT_EQ(invalid(), "throttled: clock_reasons 0x44 (run 1)");
}

TEST_F(SessionOfACase, IsInvalidIfARunOfItIs) {
  session.runs[1].other_processes = 0;
  EXPECT_EQ(invalid(), "");
  session.runs[1].other_processes = 1;
  EXPECT_EQ(invalid(), "shared: 1 other process on the device (run 1)");
  session.runs[1] = session.runs[0];
  session.runs[0].fingerprint = {{"driver", "570"}, {"cuBLAS", "12.8"}};
  session.runs[2].fingerprint = {{"driver", "570"}};
  EXPECT_EQ(invalid(), "") << "what one of them does not know is no difference";
  session.runs[2].fingerprint = {{"driver", "575"}};
  EXPECT_EQ(invalid(), "its processes differ: driver 570 → 575 (run 2)");
}

TEST_F(SessionOfACase, HasTheFiguresOfItsProcesses) {
  add_run(0, 99);
  add_run(1, 100);
  const MetricFigures found = figures();
  EXPECT_EQ(found.samples, 219u);
  EXPECT_EQ(found.tick, 1);
  ASSERT_EQ(found.runs.size(), 3u);
  EXPECT_EQ(found.runs[0].median, 1049);
  EXPECT_EQ(found.runs[0].tail, std::nullopt) << "p99/p50 takes 100 samples";
  EXPECT_NEAR(*found.runs[1].tail, 1098.01 / 1049.5, 1e-9);
  EXPECT_EQ(found.value(), 1049) << "the median of 1049, 1049.5 and 1009.5";
  EXPECT_EQ(found.tail(), found.runs[1].tail);
  EXPECT_TRUE(found.between_run_cv());
}

TEST_F(SessionOfACase, HasNoVariationBetweenTwoProcesses) {
  of_case().samples["api_ns"].erase(2);
  EXPECT_EQ(figures().between_run_cv(), std::nullopt);
}

}  // namespace
}  // namespace launchgap::regression
