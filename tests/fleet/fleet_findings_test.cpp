#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/fleet/fleet.h"
#include "tests/sentences/said.h"

namespace launchgap::fleet {
namespace {

using namespace testing;

/// Nodes of two GPUs each, with one metric, in which none differs.
FleetRows even(std::size_t nodes) {
  FleetRows rows;
  FleetMetricRow& metric = rows.metrics.emplace_back();
  metric.kind = "NVIDIA H100";
  metric.key.name = CaseName::parse("launch/null/api:driver/mode:idle");
  metric.metric = "api_ns";
  for (std::size_t i = 0; i < 2 * nodes; ++i) {
    FleetDeviceRow& device = rows.devices.emplace_back();
    device.node = fmt::format("n{}", i / 2);
    device.device = fmt::format("GPU-{}", i);
    device.kind = "NVIDIA H100";
    device.pci_bus_id = fmt::format("0000:{}7:00.0", i % 2);
    device.folder = fmt::format("../tonight/{}", i);
    device.cases = 1;
    device.metrics = 1;
    device.judged = true;
  }
  return rows;
}

/// As harness/fleet/fleet.cpp does it.
void make_worse(FleetRows& rows, std::size_t device, double ratio) {
  rows.outliers.push_back({device, 0, 2500 * ratio, ratio, {ratio * 0.99, ratio * 1.01}, true});
  rows.devices[device].worse = 1;
  rows.devices[device].place = rows.outliers.size();
  rows.devices[device].evidence = "api_ns of launch/null/api:driver/mode:idle: 3.10 µs, 1.24 times";
}

std::vector<std::string> codes(const FleetRows& rows) {
  std::vector<std::string> found;
  for (const Finding& finding : said(fleet_findings(rows))) found.push_back(finding.code);
  return found;
}

TEST(FleetFindings, OfEvenDevicesSayThatNoneStandsOut) {
  EXPECT_THAT(codes(even(3)), ElementsAre("fleet-even"));
}

TEST(FleetFindings, NameADeviceThatIsWorse) {
  FleetRows rows = even(3);
  make_worse(rows, 3, 1.24);
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, "fleet-device");
  EXPECT_EQ(found[0].device, "GPU-3");
  EXPECT_THAT(found[0].sentence, HasSubstr("NVIDIA H100 (n1, 0000:17:00.0)"));
}

TEST(FleetFindings, NameANodeOfWhichAllAreWorse) {
  FleetRows rows = even(3);
  make_worse(rows, 2, 1.14);
  make_worse(rows, 3, 1.10);
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, "fleet-node");
  EXPECT_EQ(found[0].subject, "n1");
  EXPECT_THAT(found[0].sentence, HasSubstr("1.10 times at least"));
}

TEST(FleetFindings, ADeviceFarBeyondItsNodeHasItsOwn) {
  FleetRows rows = even(3);
  make_worse(rows, 2, 3);
  make_worse(rows, 3, 1.10);
  EXPECT_THAT(codes(rows), ElementsAre("fleet-node", "fleet-device"));
}

TEST(FleetFindings, OfARateTheEvidenceIsTimesSlowerToo) {
  FleetRows rows = even(3);
  make_worse(rows, 2, 0.8);
  make_worse(rows, 3, 0.8);
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].sentence, HasSubstr("1.25 times at least"));
  ASSERT_THAT(found[0].evidence, SizeIs(3));
  EXPECT_DOUBLE_EQ(*found[0].evidence[1].value, 1.25);
  EXPECT_LT(*found[0].evidence[1].low, 1.25);
}

TEST(FleetFindings, NameADeviceThatGaveNoResult) {
  FleetRows rows = even(3);
  FleetDeviceRow& dead = rows.devices[1];
  dead.cases = dead.metrics = 0;
  dead.judged = false;
  dead.cases_failed = 191;
  dead.place = 1;
  dead.evidence = "191 cases failed: launch/null: CUDA error 700";
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, "fleet-failed");
  EXPECT_EQ(found[0].severity, Severity::prevents);
  EXPECT_THAT(found[0].sentence, HasSubstr("(n0, 0000:17:00.0) gave no result: 191 cases failed"));
}

TEST(FleetFindings, SayWhereSomeCasesFailed) {
  FleetRows rows = even(3);
  rows.devices[4].cases_failed = 2;
  rows.devices[4].failure = "launch/null: the result is wrong";
  EXPECT_THAT(codes(rows), ElementsAre("fleet-cases-failed", "fleet-even"));
}

TEST(FleetFindings, OfAKindInTwoHalvesSayThat) {
  FleetRows rows = even(3);
  rows.metrics[0].devices = 6;
  rows.metrics[0].q1 = 2500;
  rows.metrics[0].q3 = 3250;
  rows.metrics[0].host_share = 0.99;
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, "fleet-apart");
  rows.metrics[0].q3 = 2600;
  EXPECT_THAT(codes(rows), ElementsAre("fleet-even"));
}

TEST(FleetFindings, LowScoresOfSingleTimesAreNoAllClear) {
  FleetRows rows = even(3);
  rows.scores.push_back({4, 0, 0.5, std::nullopt});
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_THAT(found[0].evidence[0].name, HasSubstr("on 1 device"));
}

TEST(FleetFindings, OfNothingSayNothingElse) {
  FleetRows rows = even(2);
  for (FleetDeviceRow& device : rows.devices) {
    device.cases = device.metrics = 0;
    device.judged = false;
  }
  const std::vector<Finding> found = said(fleet_findings(rows));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].severity, Severity::prevents);
  EXPECT_EQ(found[0].sentence, "No device has a result.");
}

TEST(FleetFindings, OfTwoNodesEitherMayBeTheOddOne) {
  FleetRows rows = even(2);
  make_worse(rows, 2, 1.24);
  make_worse(rows, 3, 1.24);
  EXPECT_THAT(codes(rows), ElementsAre("fleet-device", "fleet-device"));
}

TEST(FleetFindings, ANodeIsNotNamedForOneOfItsDevices) {
  FleetRows rows = even(4);
  make_worse(rows, 2, 1.24);
  make_worse(rows, 4, 1.24);
  EXPECT_THAT(codes(rows), ElementsAre("fleet-device", "fleet-device"));
}

TEST(FleetFindings, OfManyNameTheWorstTen) {
  FleetRows rows = even(30);
  for (std::size_t i = 0; i < 24; i += 2) make_worse(rows, i, 1.5 - 0.01 * static_cast<double>(i));
  std::vector<std::string> found = codes(rows);
  ASSERT_THAT(found, SizeIs(11));
  EXPECT_EQ(found.back(), "fleet-devices");
  rows = even(30);
  for (std::size_t i = 0; i < 24; ++i) make_worse(rows, i, 1.5 - 0.01 * static_cast<double>(i));
  found = codes(rows);
  ASSERT_THAT(found, SizeIs(11));
  EXPECT_EQ(found.back(), "fleet-nodes");
}

TEST(FleetFindings, SayWhatFewRunsCannotTell) {
  FleetRows rows = even(2);
  for (FleetDeviceRow& device : rows.devices) device.judged = false;
  EXPECT_THAT(codes(rows), ElementsAre("fleet-few-runs"));
  rows.devices[0].judged = true;
  EXPECT_THAT(codes(rows), ElementsAre("fleet-few-runs", "fleet-even"));
}

TEST(FleetFindings, AScoreIsSaidAlsoOfFewRuns) {
  FleetRows rows = even(2);
  for (FleetDeviceRow& device : rows.devices) device.judged = false;
  rows.devices[1].relative_score = 0.62;
  rows.devices[1].place = 1;
  rows.devices[1].evidence = "relative score 0.62";
  rows.devices[2].individual_score = 0.5;
  rows.devices[2].place = 2;
  rows.devices[2].evidence = "individual score 0.50";
  EXPECT_THAT(codes(rows), ElementsAre("fleet-device", "fleet-device", "fleet-few-runs"));
}

TEST(FleetFindings, OfDevicesThatHaveNoOtherOfTheirKindSaySo) {
  FleetRows rows = even(1);
  for (FleetDeviceRow& device : rows.devices) device.metrics = 0;
  EXPECT_THAT(codes(rows), ElementsAre("fleet-alone"));
}

}  // namespace
}  // namespace launchgap::fleet
