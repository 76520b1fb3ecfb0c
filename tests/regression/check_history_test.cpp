// Sessions that are checked and kept, one night after the other.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/regression/check.h"
#include "harness/regression/history.h"

namespace launchgap::regression {
namespace {

using namespace testing;

constexpr std::int64_t kFirstNightS = 1'767'225'600;  // 2026-01-01

struct NightMetric {
  double median = 1000, p99 = 2000;
  std::string metric = "roundtrip_ns", invalid = {}, driver = {}, algorithm = {};
};

/// Three processes that differ by 0.1 %.
SessionFigures on_night(int night, const NightMetric& measured) {
  MetricFigures figures;
  const CaseName name = CaseName::parse("launch/null/api:queue/mode:idle");
  figures.key = {{"host-1", "plain", name.family(), name}, measured.metric};
  for (int i = 0; i < 3; ++i) {
    const double median = measured.median * (0.999 + 0.001 * i);
    figures.runs.push_back({i, median, {}, measured.p99 / measured.median, measured.p99});
  }
  figures.p99 = measured.p99;
  figures.invalid = measured.invalid;
  if (!measured.driver.empty()) figures.fingerprint = {{"driver", measured.driver}};
  if (!measured.algorithm.empty()) figures.algorithms = {measured.algorithm};
  SessionFigures session;
  session.session_id = fmt::format("night-{}", night);
  session.node = "n1";
  session.begin_utc = utc_text(kFirstNightS + std::int64_t{night} * 24 * 3600);
  session.device_names["host-1"] = "a CPU";
  session.metrics.push_back(figures);
  return session;
}

struct CheckHistory : testing::Test {
  Checked check(int night, const NightMetric& measured) {
    return check_against_history(history, on_night(night, measured), {});
  }
  void add(int night, const NightMetric& measured = {}) {
    const Checked checked = check(night, measured);
    history.add(on_night(night, measured), checked.points, checked.report.invalid);
  }

  TemporaryFolder folder{"check-history-test"};
  History history{folder.path() / "nights.db", History::Use::write};
};

TEST_F(CheckHistory, ATailIsToldWhereItHits) {
  for (int night = 0; night < 20; ++night) add(night);
  const auto tail = [this](double p99) { return check(20, {1000, p99}).report.results.at(0).tail; };
  EXPECT_EQ(tail(1500), std::nullopt);
  EXPECT_EQ(tail(2490), std::nullopt);
  EXPECT_THAT(tail(2510), Optional(DoubleEq(1.255)));
}

TEST_F(CheckHistory, ATailOfARateIsNone) {
  for (int night = 0; night < 20; ++night) add(night, {1000, 2000, "last_tflops"});
  EXPECT_EQ(check(20, {1000, 4000, "last_tflops"}).report.results.at(0).tail, std::nullopt);
}

TEST_F(CheckHistory, ItsNightsHaveLimitsFromTheTwentyFirstOnThatCounts) {
  for (int night = 0; night < 24; ++night)
    add(night, {1000, 2000, "roundtrip_ns", night == 5 ? "it was shared" : ""});
  const SessionFigures session = on_night(24, {1100, 2000});
  const NightRows rows = night_rows(history, session, {});
  ASSERT_EQ(rows.nights.size(), 25u);
  for (int night = 0; night < 25; ++night) {
    EXPECT_EQ(rows.nights[night].night, fmt::format("night-{}", night));
    EXPECT_EQ(rows.nights[night].low.has_value(), night >= 21) << night;
  }
  EXPECT_EQ(rows.nights[5].invalid, "it was shared");
  EXPECT_NEAR(*rows.nights[24].high, 1030, 1);
  EXPECT_EQ(rows.nights[24].verdict, "suspect");
  ASSERT_EQ(rows.answers.size(), 2u);
  EXPECT_EQ(rows.answers[0].tone, "warning");
  EXPECT_THAT(rows.answers[1].sentence,
              HasSubstr("1 test; none has a measured rate of false alarms"));
}

TEST_F(CheckHistory, WithoutATestNoFalseAlarmsAreToBeExpected) {
  const NightRows rows = night_rows(history, on_night(0, {}), {});
  EXPECT_THAT(rows.answers, Each(Field(&CheckAnswerRow::part, "answer")));
}

TEST_F(CheckHistory, AnAlgorithmIsNamedIfItIsUnusualAndCameWithTheSlowdown) {
  const auto as = [](double median, const char* algorithm) {
    return NightMetric{.median = median, .algorithm = algorithm};
  };
  for (int night = 0; night < 24; ++night) add(night, as(1000, "usual"));
  add(24, as(1000, "other"));
  const auto found = [&](double median, const char* algorithm) {
    return check(25, as(median, algorithm)).report.results.at(0).algorithm;
  };
  const KeyChange change = {"algorithm", "usual", "other"};
  EXPECT_THAT(found(1000, "other"), Optional(change)) << "no slower: any that is unusual";
  EXPECT_EQ(found(1100, "other"), std::nullopt) << "it came the night before";
  EXPECT_THAT(found(1100, "third"), Optional(KeyChange{"algorithm", "usual", "third"}));
  EXPECT_EQ(found(1100, "usual"), std::nullopt);
  add(25, as(1100, "third"));
  EXPECT_THAT(check(26, as(1100, "fourth")).report.results.at(0).algorithm,
              Optional(KeyChange{"algorithm", "usual", "third"}))
      << "that of the night with which it became slower";
}

TEST_F(CheckHistory, ChangesOfTheFingerprintAreToldWhereTheSeriesBegins) {
  const auto with = [](double median, const char* driver, const char* invalid = "") {
    return NightMetric{.median = median, .invalid = invalid, .driver = driver};
  };
  for (int night = 0; night < 30; ++night) add(night, with(1000, "1"));
  add(30, with(5000, "1", "it was shared"));
  const Result first = check(31, with(1250, "2")).report.results.at(0);
  EXPECT_EQ(first.verdict, Verdict::no_baseline);
  EXPECT_THAT(first.changed, ElementsAre(KeyChange{"driver", "1", "2"}));
  EXPECT_DOUBLE_EQ(*first.baseline, 1000);
  EXPECT_NEAR(*first.change, 0.25, 1e-9);
  EXPECT_EQ(first.reason, "needs 20 earlier sessions, has 0");
  add(31, with(1250, "2"));
  const Result second = check(32, with(1250, "2")).report.results.at(0);
  EXPECT_EQ(second.reason,
            "needs 20 earlier sessions, has 1; the change is that of 2 sessions together");
  EXPECT_NEAR(*second.change, 0.25, 1e-9);
  for (int night = 32; night < 51; ++night) add(night, with(1250, "2"));
  const Result judged = check(51, with(1250, "2")).report.results.at(0);
  EXPECT_EQ(judged.verdict, Verdict::same);
  EXPECT_EQ(judged.compared_with, 20u);
  const Result back = check(51, with(1000, "1")).report.results.at(0);
  EXPECT_EQ(back.verdict, Verdict::same) << "compared with those of its own driver";
  EXPECT_EQ(back.compared_with, 30u);
}

TEST_F(CheckHistory, WhatChangedWithTheNightOnWhichItBecameSlower) {
  const auto with = [](double median, const char* driver) {
    return NightMetric{.median = median, .driver = driver};
  };
  CheckOptions across;
  across.across = Across::parse("driver");
  const auto check_across = [&](int night, const NightMetric& measured) {
    return check_against_history(history, on_night(night, measured), across);
  };
  for (int night = 0; night < 40; ++night) {
    const NightMetric measured = with(night < 38 ? 1000 : 1100, night < 38 ? "1" : "2");
    history.add(on_night(night, measured), check_across(night, measured).points, "");
  }
  const Result third = check_across(40, with(1100, "3")).report.results.at(0);
  EXPECT_EQ(third.verdict, Verdict::slower);
  EXPECT_THAT(third.changed, ElementsAre(KeyChange{"driver", "1", "2"}));
  const Report same = check_across(40, with(1000, "3")).report;
  EXPECT_THAT(same.results.at(0).changed, ElementsAre(KeyChange{"driver", "2", "3"}));
  EXPECT_THAT(same.notes, Contains("driver 2 → 3: 1 metric stayed the same."));
}

TEST_F(CheckHistory, WhatTheSessionBeforeHadIsMissed) {
  SessionFigures both = on_night(0, {});
  both.metrics.push_back(on_night(0, {1000, 2000, "api_ns"}).metrics.front());
  history.add(both, check_against_history(history, both, {}).points, "");
  const Report missing = check(1, {}).report;
  ASSERT_THAT(missing.results, SizeIs(2));
  EXPECT_EQ(missing.results[0].key.metric, "api_ns");
  EXPECT_EQ(missing.results[0].verdict, Verdict::invalid);
  EXPECT_EQ(missing.results[0].reason,
            "not measured, and the session of 2026-01-01T00:00:00Z has it");
  add(1);
  EXPECT_THAT(check(2, {}).report.results, SizeIs(1)) << "the session before lacked it too";
  SessionFigures failed = on_night(1, {});
  failed.metrics.front().key.metric = "";
  failed.metrics.front().runs.clear();
  failed.metrics.front().invalid = "it crashed";
  EXPECT_THAT(check_against_history(history, failed, {}).report.results, SizeIs(1))
      << "a case that failed is said once";
}

TEST_F(CheckHistory, WhatItKnowsAlreadyAndUnknownKeysAreNoted) {
  add(0);
  EXPECT_THAT(check(0, {}).report.notes,
              Contains("It is in the history already, and was compared with those before it."));
  CheckOptions options;
  options.across = Across::parse("driver,kernel");
  const Report report =
      check_against_history(history, on_night(1, {.driver = "570"}), options).report;
  EXPECT_THAT(report.notes, ElementsAre("--across kernel: no fingerprint has this key."));
}

TEST(Confirm, AsksOnlyWhereAPlainResultIsSuspect) {
  Checked checked;
  Result plain;
  plain.key = on_night(0, {}).metrics.front().key;
  plain.key.where.device = "GPU-that-is-not-there";
  Result traced = plain;
  traced.key.where.arm = "traced";
  traced.verdict = Verdict::suspect;
  checked.report.results = {plain, traced};
  const Side baseline{"a build", {}, {}, {}};
  confirm(checked, baseline, baseline);
  EXPECT_THAT(checked.report.notes, IsEmpty()) << "there is no such GPU to ask";
}

TEST(FingerprintJson, IsFlatAndKeepsItsLetters) {
  const Json json = Json::parse(R"({"gpu": {"name": "é", "sizes": ["é", 2]}, "driver": "570"})");
  EXPECT_THAT(
      fingerprint_from_json(json),
      ElementsAre(Pair("driver", "570"), Pair("gpu.name", "é"), Pair("gpu.sizes", "[\"é\",2]")));
  EXPECT_EQ(parse_canonical(canonical_text(fingerprint_from_json(json))),
            fingerprint_from_json(json));
}

TEST(Across, CoversTheKeysThatAreNamedAndWhatComesWithADriver) {
  const Across across = Across::parse("kernel,driver_version");
  EXPECT_THAT(across.asked(), ElementsAre("driver_version", "kernel"));
  for (const char* const key : {"kernel", "driver", "driver_version", "NVML", "CUDA driver"})
    EXPECT_TRUE(across.covers(key)) << key;
  EXPECT_FALSE(across.covers("cuBLAS"));
  EXPECT_TRUE(Across::parse("").empty());
  for (const char* const keys : {",", "a,", ",a", "a,,b"})
    EXPECT_THROW(Across::parse(keys), UsageError) << keys;
}

TEST_F(CheckHistory, IsExportedColumnByColumn) {
  SessionFigures session = on_night(0, {});
  Point point;
  point.key = session.metrics.front().key;
  point.night = {kFirstNightS, 1000.5, {0.25, 0.5, 1.75, 3}, 2000};
  point.runs = 4;
  point.fingerprint = {{"driver", "570.12é"}};  // as it is, and not escaped
  history.add(session, {point}, "");
  export_csv(history, folder.path() / "nights.csv");
  std::string written = InputFile(folder.path() / "nights.csv").text(1 << 20);
  std::erase(written, '\r');
  EXPECT_EQ(written,
            "session_id,node,begin_utc,device_id,device_name,arm,process_config,case,metric,unit,"
            "value,runs,"
            "within_run_cv,between_run_cv,tail,modes,p99,verdict,invalid,fingerprint\n"
            "night-0,n1,2026-01-01T00:00:00Z,host-1,a CPU,plain,launch,"
            "launch/null/api:queue/mode:idle,roundtrip_ns,ns,1000.5,4,0.25,0.5,1.75,3,2000,same,,"
            "\"{\"\"driver\"\":\"\"570.12é\"\"}\"\n");
}

}  // namespace
}  // namespace launchgap::regression
