#include "harness/rules/two_sessions.h"

#include <cmath>

#include <gmock/gmock.h>

#include "harness/regression/check.h"

namespace launchgap::regression {
namespace {

using namespace testing;

/// Of four processes, each measure of which varies by 0.1 %.
struct Measured {
  double median = 1000;
  std::optional<double> cv = {}, tail = {}, p99 = {};
};

MetricFigures four_processes(const Measured& measured,
                             const std::string& metric = "roundtrip_ns",
                             double spread = 0.001) {
  MetricFigures made;
  const CaseName name = CaseName::parse("launch/null/api:queue/mode:idle");
  made.key = {{"host-1", "plain", name.family(), name}, metric};
  for (int i = 0; i < 4; ++i) {
    const double factor = std::exp(i % 2 ? spread : -spread);
    const auto times = [factor](std::optional<double> value) {
      return value ? std::optional(*value * factor) : std::nullopt;
    };
    made.runs.push_back({i,
                         measured.median * factor,
                         times(measured.cv),
                         times(measured.tail),
                         times(measured.p99)});
  }
  made.p99 = measured.p99;
  return made;
}

SessionFigures session_of(const std::string& id, const std::vector<MetricFigures>& metrics) {
  SessionFigures session;
  session.session_id = id;
  session.metrics = metrics;
  for (const MetricFigures& one : metrics) {
    const std::string& device = one.key.where.device;
    session.device_names[device] = "a " + device;
  }
  return session;
}

Report of_two(const std::vector<MetricFigures>& before, const std::vector<MetricFigures>& now) {
  return check_two_sessions(session_of("before", before), session_of("now", now), {});
}

Result judged(const MetricFigures& before, const MetricFigures& now) {
  const Report report = of_two({before}, {now});
  return report.results.at(0);
}

std::string in_words(Steadiness steadiness, const std::string& reason) {
  return std::string(name_of(steadiness)) + (reason.empty() ? "" : ": " + reason);
}

TEST(TwoSessions, DifferFromThreePercentOn) {
  struct Row {
    double now;
    Verdict less_is_better, more_is_better;
  };
  for (const Row& row : {Row{1029, Verdict::same, Verdict::same},
                         Row{1031, Verdict::suspect, Verdict::faster},
                         Row{971, Verdict::same, Verdict::same},
                         Row{969, Verdict::faster, Verdict::suspect}}) {
    const Result time = judged(four_processes({1000}), four_processes({row.now}));
    EXPECT_EQ(time.verdict, row.less_is_better) << row.now;
    EXPECT_NEAR(*time.change, row.now / 1000 - 1, 1e-9);
    const Result rate =
        judged(four_processes({1000}, "last_tflops"), four_processes({row.now}, "last_tflops"));
    EXPECT_EQ(rate.verdict, row.more_is_better) << row.now;
  }
}

TEST(TwoSessions, DifferByMoreThanTheirProcessesDo) {
  const auto by = [](double median, double spread) {
    return judged(four_processes({1000}, "roundtrip_ns", spread),
                  four_processes({median}, "roundtrip_ns", spread));
  };
  const auto by_four_percent = [&](double spread) { return by(1040, spread); };
  EXPECT_EQ(by_four_percent(0.012).verdict, Verdict::suspect) << "+0.3 to +8 %";
  EXPECT_EQ(by_four_percent(0.0135).verdict, Verdict::cannot_tell) << "-0.2 to +8 %";
  EXPECT_EQ(by(960, 0.0135).verdict, Verdict::cannot_tell);
  EXPECT_EQ(by(1029, 0.0135).verdict, Verdict::same) << "-1.1 to +7 %: too little to count";
  const Result wide = by_four_percent(0.025);
  EXPECT_EQ(wide.verdict, Verdict::cannot_tell) << "-3.6 to +12 %";
  // By scipy: 15 are the fewest of which t(0.995, 2n-2) sqrt(var/n) is log(1.03) or less.
  EXPECT_EQ(wide.reason, "some 15 runs of each session would tell");
}

/// The change is what the shown medians say, whichever way one run moves the mean.
TEST(TwoSessions, OneRunThatIsFarFromTheOthersDoesNotTurnTheChange) {
  const auto of_runs = [](const std::vector<double>& medians) {
    MetricFigures made = four_processes({1000});
    made.runs.resize(medians.size());
    for (std::size_t i = 0; i < medians.size(); ++i) made.runs[i].median = medians[i];
    return made;
  };
  const Result less =
      judged(of_runs({1000, 1001, 1002, 1003, 1004}), of_runs({900, 901, 902, 903, 90'000}));
  EXPECT_NEAR(*less.change, 902.0 / 1002 - 1, 1e-9);
  EXPECT_EQ(less.verdict, Verdict::cannot_tell);
  ASSERT_TRUE(less.interval);
  EXPECT_LE(less.interval->low, *less.change);
  // Of 51 runs 20 moved further: the mean's interval is +3.5 to +6.1 % (scipy), the median's change
  // +1.1 %, which does not count.
  const auto of_51 = [&](double usual, double other) {
    std::vector<double> medians(31, usual);
    medians.resize(51, other);
    for (std::size_t i = 0; i < medians.size(); ++i) medians[i] += 0.01 * static_cast<double>(i);
    return of_runs(medians);
  };
  const Result few = judged(of_51(1000, 960), of_51(1011, 1065));
  EXPECT_NEAR(*few.change, 0.011, 0.0005);
  EXPECT_EQ(few.interval->low, *few.change);
  EXPECT_EQ(few.verdict, Verdict::same);
}

TEST(TwoSessions, AnIntervalTakesThreeProcessesOfEach) {
  const auto of_so_many = [](std::size_t before, std::size_t now) {
    MetricFigures sides[] = {four_processes({1000}), four_processes({1500})};
    sides[0].runs.resize(before);
    sides[1].runs.resize(now);
    for (MetricFigures& side : sides) side.key.where.arm = "recorded";  // may have fewer
    return judged(sides[0], sides[1]);
  };
  EXPECT_EQ(of_so_many(3, 3).verdict, Verdict::suspect);
  EXPECT_EQ(of_so_many(2, 3).verdict, Verdict::watch);
  const Result watched = of_so_many(3, 2);
  EXPECT_EQ(watched.verdict, Verdict::watch);
  EXPECT_EQ(watched.reason, "3 and 2 processes, and an interval takes 3 of each");
  EXPECT_NEAR(*watched.change, 0.5, 0.01);
  EXPECT_FALSE(watched.interval);
}

TEST(TwoSessions, AreErraticOrSteadierFromALeastRatioOn) {
  const struct {
    Measured before, now;
    const char* expected;
  } rows[] = {
      {{1000, 0.02}, {1000, 0.0299}, "same"},
      {{1000, 0.02}, {1000, 0.0301}, "erratic: within-run CV 1.5 times that of before"},
      {{1000, 0.03}, {1000, 0.0201}, "same"},
      {{1000, 0.03}, {1000, 0.0199}, "steadier: within-run CV 0.7 times that of before"},
      {{1000, 0.005}, {1000, 0.0099}, "same"},  // both below 1 %
      {{1000, 0.005}, {1000, 0.0101}, "erratic: within-run CV 2.0 times that of before"},
      {{1000, 0.0101}, {1000, 0.005}, "steadier: within-run CV 0.5 times that of before"},
      {{1000, 0.0}, {1000, 0.05}, "same"},  // nothing varied
      {{1000, 0.05}, {1000, 0.0}, "same"},
      {{1000, {}, 2}, {1000, {}, 2.49}, "same"},
      {{1000, {}, 2}, {1000, {}, 2.51}, "erratic: p99/p50 1.3 times that of before"},
      {{1000, {}, 2.51}, {1000, {}, 2}, "steadier: p99/p50 0.8 times that of before"},
      // What became worse counts more.
      {{1000, 0.02, 4}, {1000, 0.04, 2}, "erratic: within-run CV 2.0 times that of before"},
      {{1000, 0.04, 2}, {1000, 0.02, 4}, "erratic: p99/p50 2.0 times that of before"},
  };
  for (const auto& row : rows) {
    const Result found = judged(four_processes(row.before), four_processes(row.now));
    EXPECT_EQ(in_words(found.steadiness, found.steadiness_reason), row.expected) << &row - rows;
  }
}

TEST(TwoSessions, WithoutTheP99OfAllSamplesThereIsNoTail) {
  rules::SessionProcesses before, now;
  before.p99s = {2000, 2001, 2002};
  now.p99s = {8000, 8001, 8002};
  EXPECT_EQ(rules::judge_tail(before, now, 0), std::nullopt);
  now.p99 = 8001;
  EXPECT_EQ(rules::judge_tail(before, now, 0), std::nullopt);
  before.p99 = 2000.25;
  EXPECT_THAT(rules::judge_tail(before, now, 0), Optional(DoubleNear(4, 0.001)));
  before.p99 = 7000;
  EXPECT_EQ(rules::judge_tail(before, now, 0), std::nullopt) << "of all samples it is not longer";
}

TEST(TwoSessions, AP99IsErraticFromAQuarterMoreThanTheMedianOn) {
  const auto of_p99 = [](double median, double p99, const std::string& metric = "roundtrip_ns") {
    return judged(four_processes({1000, {}, {}, 2000}, metric),
                  four_processes({median, {}, {}, p99}, metric));
  };
  EXPECT_EQ(of_p99(1000, 2490).tail, std::nullopt);
  const Result longer = of_p99(1000, 2510);
  EXPECT_THAT(longer.tail, Optional(DoubleEq(1.255)));
  EXPECT_EQ(longer.steadiness, Steadiness::erratic);
  EXPECT_EQ(longer.steadiness_reason, "p99 1.3 times that of before");
  EXPECT_EQ(of_p99(1100, 2740).tail, std::nullopt) << "the median grew by a tenth itself";
  EXPECT_TRUE(of_p99(1100, 2760).tail);
  EXPECT_EQ(of_p99(1000, 4000, "last_tflops").tail, std::nullopt)
      << "the 99th percentile of a rate is its best";
}

TEST(TwoSessions, WhatOneLacksOfWhatItMeasuredIsInvalid) {
  const MetricFigures here = four_processes({1000});
  MetricFigures lacking = here, elsewhere = here, no_result = here;
  lacking.key.metric = "api_ns";
  elsewhere.key.where.device = "host-2";
  no_result.key.metric = "";
  const Report report = of_two({here, lacking, elsewhere, no_result}, {here});
  ASSERT_EQ(report.results.size(), 2u);
  EXPECT_EQ(report.results[0].key, lacking.key);
  EXPECT_EQ(report.results[0].verdict, Verdict::invalid);
  EXPECT_EQ(report.results[0].reason, "not measured, and before has it");
  EXPECT_THAT(report.results[0].baseline, Optional(DoubleNear(1000, 0.01)));
  EXPECT_EQ(report.results[1].verdict, Verdict::same);
  EXPECT_THAT(report.notes, Contains("a host-2 (host-2) is in before alone."));
}

TEST(TwoSessions, OfWhichTheFirstIsTheLaterOneSaySo) {
  const auto notes = [](const char* base_utc, const char* utc) {
    SessionFigures base = session_of("before", {four_processes({1000})}), session = base;
    base.begin_utc = base_utc;
    session.session_id = "now";
    session.begin_utc = utc;
    return check_two_sessions(base, session, {}).notes;
  };
  const char* const later = "before is the later one of the two.";
  EXPECT_THAT(notes("2026-11-22T03:00:01Z", "2026-11-22T03:00:00Z"), Contains(later));
  EXPECT_THAT(notes("2026-11-22T03:00:00Z", "2026-11-22T03:00:00Z"), Not(Contains(later)));
  EXPECT_THAT(notes("2026-11-22T03:00:01Z", ""), Contains(later));
  EXPECT_THAT(notes("", "2026-11-22T03:00:00Z"), Not(Contains(later)));
}

}  // namespace
}  // namespace launchgap::regression
