#include "harness/regression/session_figures.h"

#include <ctime>

#include <gmock/gmock.h>

#include "harness/core/clock.h"

namespace launchgap::regression {
namespace {

using testing::HasSubstr;

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
    session.telemetry.push_back({{key.name.text(), block, at_ns, std::move(values)},
                                 {key.device, key.arm, key.process_config, 1}});
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

TEST_F(SessionOfACase, BeganWithTheFirstOfItsProcesses) {
  session.runs[0].begin_utc = "2026-11-22T03:00:02Z";
  session.runs[1].begin_utc = "2026-11-22T03:00:01Z";
  EXPECT_EQ(figures_of(session).begin_utc, "2026-11-22T03:00:01Z") << "run 2 does not tell";
}

TEST_F(SessionOfACase, CannotHaveBegunBefore2020NorTomorrow) {
  const auto invalid_if_begun = [&](const std::string& utc) {
    session.runs[0].begin_utc = utc;
    return figures_of(session).invalid;
  };
  EXPECT_EQ(invalid_if_begun("2019-12-31T23:59:59Z"),
            "it began at 2019-12-31T23:59:59Z, before 2020: the machine's clock was not set");
  EXPECT_EQ(invalid_if_begun("2020-01-01T00:00:00Z"), "");
  EXPECT_EQ(invalid_if_begun(utc_text(std::time(nullptr) + std::time_t{23} * 3600)), "");
  EXPECT_THAT(invalid_if_begun(utc_text(std::time(nullptr) + std::time_t{25} * 3600)),
              HasSubstr("in the future"));
  EXPECT_EQ(invalid_if_begun("yesterday"),
            "'yesterday' is no time at which it can have begun, as 2026-11-22T03:00:00Z is");
  key.arm = "recorded";  // which may be of any time
  const auto of_plain = session.cases.extract(session.cases.begin());
  session.cases[key] = of_plain.mapped();
  EXPECT_EQ(invalid_if_begun("2019-12-31T23:59:59Z"), "");
}

TEST_F(SessionOfACase, HasTheModesOfMostOfItsProcesses) {
  const auto set = [&](int run, bool two) {
    std::vector<double>& values = of_case().samples["api_ns"][run];
    values.clear();
    for (int i = 0; i < 200; ++i) values.push_back((two && i % 2 ? 2000 : 1000) + i % 7);
  };
  set(0, true), set(1, false), set(2, true);
  EXPECT_EQ(figures().modes, 2);
  set(2, false);
  EXPECT_EQ(figures().modes, 1);
  set(0, false), set(1, true);
  of_case().samples["api_ns"].erase(2);
  EXPECT_EQ(figures().modes, 1) << "of as many each the fewer modes";
}

TEST_F(SessionOfACase, IsHeldDownByHardwareHeatAndPowerBrakesTogether) {
  add_telemetry(-1, 0, {{"held_by_sw_thermal_ns", 0}, {"held_by_power_brake_ns", 10}});
  add_telemetry(3, 1000, {{"held_by_sw_thermal_ns", 5}, {"held_by_power_brake_ns", 15}});
  EXPECT_THAT(invalid(), HasSubstr("for 1 % of the time")) << "half a percent each";
  session.telemetry.back().values["held_by_power_brake_ns"] = 9;
  EXPECT_EQ(invalid(), "") << "a counter that began anew has held nothing down";
  session.telemetry.back().values["held_by_power_brake_ns"] = 3000;
  EXPECT_THAT(invalid(), HasSubstr("for 100 % of the time"));
  session.telemetry.back().at_ns = 0;
  EXPECT_EQ(invalid(), "") << "no time has passed";
}

TEST_F(SessionOfACase, EachOfFourReasonsThrottles) {
  for (int bit = 0; bit < 9; ++bit) {
    session.telemetry.clear();
    add_telemetry(0, 1000, {{"clock_reasons", 1 << bit}});
    EXPECT_EQ(!invalid().empty(), bit == 3 || bit == 5 || bit == 6 || bit == 7) << bit;
  }
  for (const double none : {-1.0, 0x1p53}) {
    session.telemetry.clear();
    add_telemetry(0, 1000, {{"clock_reasons", none}});
    EXPECT_EQ(invalid(), "") << none;
  }
}

TEST_F(SessionOfACase, OfSharedOnesHowManyOthersThereWere) {
  session.runs[2].other_processes = 2;
  EXPECT_EQ(invalid(), "shared: 2 other processes on the device (run 2)");
  session.runs[1].measured_under_tool = "Nsight Systems";
  EXPECT_EQ(invalid(), "run under a tool: Nsight Systems (run 1)") << "the first that is found";
}

TEST_F(SessionOfACase, OfSeveralAttemptsEachCounts) {
  session.runs.push_back(session.runs[1]);
  session.runs.back().other_processes = 1;
  EXPECT_EQ(invalid(), "shared: 1 other process on the device (run 1)");
  session.runs.back().other_processes.reset();
  session.runs[1].fingerprint = {{"driver", "570"}};
  session.runs.back().fingerprint = {{"cuBLAS", "12.8"}};
  EXPECT_EQ(figures().fingerprint, (Fingerprint{{"cuBLAS", "12.8"}, {"driver", "570"}}));
}

TEST_F(SessionOfACase, OfTracedOnesWhatOnlyTheyHaveCounts) {
  key.arm = "traced";
  of_case().metric_order = {"api_ns", "launch_ns"};
  of_case().outcomes[0] = {Status::ok, ""};
  for (const char* const metric : {"api_ns", "launch_ns"}) of_case().samples[metric][0] = {1, 2, 3};
  std::vector<std::string> metrics;
  for (const MetricFigures& found : figures_of(session).metrics)
    metrics.push_back(found.key.where.arm + " " + found.key.metric);
  EXPECT_THAT(metrics, testing::ElementsAre("plain api_ns", "traced launch_ns"));
}

TEST_F(SessionOfACase, WithoutSamplesIsNoMetricUnlessItFailed) {
  of_case().samples["api_ns"] = {{0, {}}};
  EXPECT_EQ(figures_of(session).invalid, "it has no results");
  of_case().outcomes[1] = {Status::failed, "it crashed"};
  const SessionFigures found = figures_of(session);
  ASSERT_EQ(found.metrics.size(), 1u);
  EXPECT_EQ(found.metrics[0].key.metric, "");
  EXPECT_EQ(found.metrics[0].invalid, "failed in run 1: it crashed");
}

TEST_F(SessionOfACase, OfFewSamplesPerProcessTheTailIsThatOfAll) {
  for (int run = 0; run < 3; ++run) add_run(run, 34);
  EXPECT_NEAR(*figures().tail(), *figures().p99 / 1016.5, 1e-9);
  for (int run = 0; run < 3; ++run) add_run(run, run == 0 ? 31 : 34);
  EXPECT_EQ(figures().tail(), std::nullopt) << "99 samples";
}

TEST_F(SessionOfACase, OfWhatIsZeroThereIsNoRatio) {
  for (int run = 0; run < 3; ++run) of_case().samples["api_ns"][run].assign(100, 0);
  const MetricFigures found = figures();
  EXPECT_EQ(found.tail(), std::nullopt);
  EXPECT_EQ(found.between_run_cv(), std::nullopt);
  EXPECT_EQ(found.tick, 0);
}

TEST_F(SessionOfACase, VariesBetweenProcessesHoweverSmallItsValuesAre) {
  for (int run = 0; run < 3; ++run) of_case().samples["api_ns"][run].assign(3, 0.5 + 0.125 * run);
  const double usual = *figures().between_run_cv();
  for (auto& [run, values] : of_case().samples["api_ns"]) {
    for (double& value : values) value *= 1024;
  }
  EXPECT_NEAR(*figures().between_run_cv(), usual, 1e-12);
}

TEST_F(SessionOfACase, HasNoVariationBetweenTwoProcesses) {
  of_case().samples["api_ns"].erase(2);
  EXPECT_EQ(figures().between_run_cv(), std::nullopt);
}

}  // namespace
}  // namespace launchgap::regression
