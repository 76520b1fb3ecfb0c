// Sessions that are checked and kept, one night after the other.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/regression/check.h"
#include "harness/regression/history_export.h"
#include "harness/regression/night_view.h"

namespace launchgap::regression {
namespace {

using namespace testing;

constexpr std::int64_t kFirstNightS = 1'767'225'600;  // 2026-01-01

struct NightMetric {
  double median = 1000, p99 = 2000;
  std::string metric = "roundtrip_ns", invalid = {};
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
