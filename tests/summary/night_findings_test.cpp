#include <gmock/gmock.h>

#include "harness/summary/session_findings.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

VerdictRow verdict(const char* name, const char* metric, double before, double now) {
  VerdictRow row;
  row.key = {"GPU-1", "plain", ProcessConfig("launch"), CaseName::parse(name)};
  row.metric = metric;
  row.verdict = "same";
  row.baseline = before;
  row.value = now;
  row.change = now / before - 1;
  row.compared_with = 30;
  row.steadiness = "same";
  return row;
}

std::vector<Finding> found_in(const std::vector<VerdictRow>& verdicts) {
  SessionData session;
  session.devices = {a_device("GPU-1", "NVIDIA H100")};
  return said(night_findings(session, verdicts));
}

TEST(NightFindings, AreNoneWhereNothingMoved) {
  EXPECT_THAT(found_in({verdict("launch/null/mode:idle", "api_ns", 2300, 2310)}), IsEmpty());
}

TEST(NightFindings, NameEachMetricThatIsSlowerWithWhatIsAtStake) {
  VerdictRow slower = verdict("launch/null/mode:idle", "roundtrip_ns", 6920, 7500);
  slower.verdict = "slower";
  slower.reason = "in 3 sessions in a row";
  VerdictRow rate = verdict("matmul/library/size:2048", "tflops", 100, 80);
  rate.verdict = "slower";
  const std::vector<Finding> found = found_in({slower, rate});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].source, FindingSource::gate);
  EXPECT_EQ(found[0].code, "slower");
  EXPECT_EQ(found[0].severity, Severity::act);
  EXPECT_EQ(found[0].subject, "NVIDIA H100");
  EXPECT_EQ(found[0].sentence,
            "launch/null/mode:idle is 8.4 % slower than in the sessions before: the round trip was "
            "6.92 µs and is 7.50 µs.");
  EXPECT_THAT(
      found[0].evidence,
      ElementsAre(Evidence("roundtrip_ns of launch/null/mode:idle, +8.4 %: in 3 sessions in a row"),
                  Evidence("sessions before", 30, "1")));
  EXPECT_NEAR(*found[0].share, 1 - 6920.0 / 7500, 1e-9);
  EXPECT_THAT(found[1].sentence, HasSubstr("20 % slower"));
  EXPECT_NEAR(*found[1].share, 0.2, 1e-9) << "a rate that falls is time that is lost";
}

TEST(NightFindings, OfTheRestEachKindIsOneSentence) {
  const char* const idle = "launch/null/mode:idle";
  VerdictRow suspect = verdict(idle, "roundtrip_ns", 6920, 7500),
             also = verdict(idle, "api_ns", 2300, 2500),
             faster = verdict(idle, "flag_ns", 500, 400),
             erratic = verdict(idle, "echo_ns", 500, 500);
  suspect.verdict = also.verdict = "suspect";
  faster.verdict = "faster";
  erratic.steadiness = "erratic";
  erratic.steadiness_reason = "within-run CV 2.4 times as large";
  const std::vector<Finding> found = found_in({suspect, also, faster, erratic});
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].sentence,
            "2 metrics may be slower than in the sessions before: further sessions decide.");
  EXPECT_THAT(found[0].evidence, SizeIs(2));
  EXPECT_EQ(found[1].code, "erratic");
  EXPECT_THAT(text_of(found[1].evidence.at(0)), HasSubstr("CV 2.4 times as large"));
  EXPECT_EQ(found[2].sentence, "1 metric is faster than in the sessions before.");
  for (const Finding& finding : found) EXPECT_EQ(finding.severity, Severity::note);
}

TEST(NightFindings, OneOfAKindIsOneMetric) {
  VerdictRow suspect = verdict("launch/null/mode:idle", "api_ns", 2300, 2500);
  suspect.verdict = "suspect";
  suspect.steadiness = "erratic";
  VerdictRow faster = verdict("launch/queue", "api_ns", 2300, 2000), other = faster;
  faster.verdict = other.verdict = "faster";
  EXPECT_THAT(found_in({suspect, faster, other}), SizeIs(3));
}

/// Of one metric that is slower.
Finding slower_finding(const VerdictRow& row) {
  const std::vector<Finding> found = night_findings({}, {row});
  EXPECT_THAT(found, SizeIs(1));
  return found.at(0);
}

TEST(NightFindings, TimeIsLostWhereBothLevelsAreAboveZero) {
  VerdictRow row = verdict("launch/null", "api_ns", 0.5, 1);
  row.verdict = "slower";
  EXPECT_EQ(slower_finding(row).share, 0.5);
  row.value = 0;
  EXPECT_EQ(slower_finding(row).share, std::nullopt);
  row.value.reset();
  EXPECT_EQ(slower_finding(row).share, std::nullopt);
  row.value = 1;
  row.baseline = 0;
  EXPECT_EQ(slower_finding(row).share, std::nullopt);
  row.baseline.reset();
  EXPECT_EQ(slower_finding(row).share, std::nullopt);
}

TEST(NightFindings, OfWhatIsNotKnownLittleIsSaid) {
  VerdictRow row = verdict("launch/null", "no_such_metric", 3, 4);
  row.verdict = "slower";
  row.change.reset();
  row.key.process_config = ProcessConfig("launch+wait=block");
  const Finding found = slower_finding(row);
  EXPECT_EQ(found.sentence,
            "launch/null [launch+wait=block] is 0 % slower than in the sessions before: "
            "no_such_metric was 3 and is 4.");
  EXPECT_EQ(found.evidence.at(0).name, "no_such_metric of launch/null [launch+wait=block]");
  EXPECT_EQ(found.subject, "GPU-1");
}

}  // namespace
}  // namespace launchgap
