#include "harness/summary/adviser.h"

#include <cmath>
#include <deque>

#include <gmock/gmock.h>

#include "harness/core/text.h"
#include "tests/device/a_device.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

/// Rows of one GPU that stay where they are.
struct AdviserRows {
  SummaryRow& add(const std::string& name,
                  const std::string& metric,
                  std::vector<double> medians,
                  const char* arm = "plain",
                  const char* process_config = "launch") {
    return rows.emplace_back(a_row("GPU-1", name, metric, std::move(medians), arm, process_config));
  }
  std::vector<const SummaryRow*> all() const {
    std::vector<const SummaryRow*> found;
    for (const SummaryRow& row : rows) found.push_back(&row);
    return found;
  }
  BenchmarkRows of_axis() const { return {"launch/axis", all()}; }

  std::deque<SummaryRow> rows;
};

TEST(BenchmarkRows, AreOfTheirBenchmarkAndHaveAResult) {
  AdviserRows made;
  made.add("launch/other/n:1", "api_ns", {1});
  made.add("launch/axis/n:1", "api_ns", {1}).status = Status::failed;
  made.add("launch/axis/n:1", "api_ns", {1}).p50.reset();
  made.add("launch/axis/n:1", "api_ns", {1}).run_medians.clear();
  made.add("launch/axis/n:1", "api_ns", {1}, "plain", "launch+trace_level=none");
  EXPECT_TRUE(made.of_axis().empty());
  const SummaryRow& blocks =
      made.add("launch/axis/n:1/m:2", "api_ns", {1}, "plain", "launch+wait=block");
  EXPECT_EQ(made.of_axis().find({{"n", "1"}}, "api_ns"), &blocks);
  const SummaryRow& traced = made.add("launch/axis/n:1/m:2", "api_ns", {1}, "traced");
  const SummaryRow& usual = made.add("launch/axis/n:1/m:2", "api_ns", {1});
  made.add("launch/axis/n:1/m:2", "api_ns", {1});
  const BenchmarkRows rows = made.of_axis();
  EXPECT_EQ(rows.find({{"n", "1"}, {"m", "2"}}, "api_ns"), &usual);
  EXPECT_EQ(rows.find({}, "api_ns", Arm::traced), &traced);
  EXPECT_EQ(rows.find({}, "wall_ns"), nullptr);
  EXPECT_EQ(rows.find({{"n", "1"}, {"m", "3"}}, "api_ns"), nullptr);
  EXPECT_EQ(rows.find({{"k", "1"}}, "api_ns"), nullptr);
}

TEST(BenchmarkRows, HaveTheValuesOfAnAxisOnceAndNumbersAscending) {
  AdviserRows made;
  made.add("launch/axis/n:8/m:1", "wall_ns", {1});
  made.add("launch/axis/n:7/m:1", "api_ns", {1}, "traced");
  made.add("launch/axis/n:6/m:2", "api_ns", {1});
  for (const char* const value : {"many", "10", "9", "5x", "10", "all"})
    made.add(std::string("launch/axis/n:") + value + "/m:1", "api_ns", {1});
  made.add("launch/axis/m:1", "api_ns", {1});
  EXPECT_THAT(made.of_axis().values({{"m", "1"}}, "api_ns", "n"),
              ElementsAre("9", "10", "many", "5x", "all"));
}

TEST(BenchmarkRows, CompareEachValueWithTheReference) {
  AdviserRows made;
  for (const auto& [value, level] : {std::pair("1", 100.0), {"2", 200.0}, {"4", 400.0}})
    made.add(std::string("launch/axis/n:") + value, "api_ns", {level, level, level});
  std::vector<double> ratios;
  for (const Comparison& one : made.of_axis().compare_axis({}, "api_ns", "n", "2"))
    ratios.push_back(std::round(8 * *one.ratio.value));
  EXPECT_THAT(ratios, ElementsAre(4, 16));
  EXPECT_THAT(made.of_axis().compare_axis({}, "api_ns", "n", "3"), IsEmpty());
  EXPECT_FALSE(compare(&made.rows[0], nullptr));
  EXPECT_FALSE(compare(nullptr, &made.rows[0]));
}

Comparison comparison(RatioVerdict verdict, double ratio) {
  static const SummaryRow kRow = a_row("GPU-1", "launch/axis", "api_ns", {1});
  Comparison made;
  made.row = made.reference = &kRow;
  made.ratio.verdict = verdict;
  made.ratio.value = ratio;
  return made;
}

TEST(Comparisons, HoldFromTheFirstOfTheirLastOnesOn) {
  using enum RatioVerdict;
  const std::vector<Comparison> all = {
      comparison(more, 2), comparison(same, 1), comparison(more, 3), comparison(more, 4)};
  EXPECT_EQ(from_which_on(all, more), &all[2]);
  EXPECT_EQ(from_which_on(all, less), nullptr);
  EXPECT_EQ(from_which_on({}, more), nullptr);
}

TEST(Comparisons, TheStrongestIsFarthestFromOneAndTheFirstOfEqualOnes) {
  using enum RatioVerdict;
  const std::vector<Comparison> all = {comparison(less, 0.5),
                                       comparison(more, 3),
                                       comparison(more, 4),
                                       comparison(more, 4),
                                       comparison(less, 0.125),
                                       comparison(unclear, 99)};
  EXPECT_EQ(strongest(all, more), &all[2]);
  EXPECT_EQ(strongest(all, less), &all[4]);
  EXPECT_EQ(strongest(all, same), nullptr);
  EXPECT_EQ(&deciding(all), &all[4]) << "an eighth is farther than four times";
}

TEST(Comparisons, TheFewestThatAreAsGoodAsTheBestAreWithinATwentieth) {
  using enum RatioVerdict;
  const std::vector<Comparison> all = {comparison(more, 0.1),
                                       comparison(less, 0.53),
                                       comparison(less, 0.525),
                                       comparison(less, 0.5),
                                       comparison(less, 0.51)};
  EXPECT_EQ(fewest_as_good_as_best(all), &all[2]);
  EXPECT_EQ(fewest_as_good_as_best({comparison(more, 0.1)}), nullptr);
}

TEST(Comparisons, TheStrongestClaimDecidesAndElseTheLeastCertain) {
  using enum RatioVerdict;
  const std::vector<Comparison> equal = {comparison(less, 0.5), comparison(more, 2)};
  EXPECT_EQ(&deciding(equal), &equal[1]);
  const std::vector<Comparison> smaller = {
      comparison(same, 1), comparison(less, 0.5), comparison(more, 1.5)};
  EXPECT_EQ(&deciding(smaller), &smaller[1]);
  const std::vector<Comparison> more_alone = {comparison(same, 1), comparison(more, 2)};
  EXPECT_EQ(&deciding(more_alone), &more_alone[1]);
  const std::vector<Comparison> alike = {comparison(same, 1), comparison(same, 1.01)};
  EXPECT_EQ(&deciding(alike), &alike[1]) << "the last";
  const std::vector<Comparison> open = {
      comparison(same, 1), comparison(few_runs, 1), comparison(same, 1)};
  EXPECT_EQ(&deciding(open), &open[1]);
}

TEST(AdviceWords, SayTimesShorterBelowTwoThirds) {
  EXPECT_EQ(multiple(0.5), "2.0 times shorter than that");
  EXPECT_EQ(multiple(0.67), "0.67 times that");
  EXPECT_EQ(multiple(0.66), "1.52 times shorter than that");
  EXPECT_EQ(multiple(2), "2.0 times that");
  EXPECT_EQ(multiple(0), times_text(0) + " times that");
}

TEST(AdviceWords, AMedianHasTheUnitOfItsMetric) {
  const auto text = [](const char* metric, double value) {
    return value_text(a_row("GPU-1", "launch/axis", metric, {value}));
  };
  EXPECT_EQ(text("api_ns", 2000), "2.00 µs");
  EXPECT_EQ(text("idle_share", 0.25), "25 %");
  EXPECT_EQ(text("queue_depth", 1022), "1022");
  EXPECT_EQ(text("no_such_metric", 12345.6), "1.235e+04");
}

TEST(AdviceWords, ALevelIsTheGeometricMeanOfRunsWhereThatIsDefined) {
  SummaryRow row = a_row("GPU-1", "launch/axis", "api_ns", {100, 400});
  row.p50 = 7;
  EXPECT_EQ(level_text(row), "200 ns");
  row.run_medians = {0, 4};
  EXPECT_EQ(level_text(row), "7 ns");
  EXPECT_EQ(axis_value(a_row("GPU-1", "launch/axis/n:3", "api_ns", {1}), "n"), "3");
  EXPECT_EQ(axis_value(row, "n"), "");
}

TEST(AdviceWords, EvidenceSaysWhatTheNamesDoNotShare) {
  AdviserRows made;
  const SummaryRow& few = made.add("launch/axis/n:1/m:2", "api_ns", {100, 100, 100});
  const SummaryRow& many = made.add("launch/axis/n:4/m:2", "api_ns", {200, 200, 200, 200});
  const SummaryRow& wall = made.add("launch/axis/n:1/m:2", "roundtrip_ns", {400});
  EXPECT_EQ(evidence_of(*compare(&many, &few)).name,
            "api_ns, 200 ns (n:4) against 100 ns (n:1), 4 and 3 runs");
  EXPECT_EQ(evidence_of(*compare(&wall, &few)).name,
            "roundtrip_ns 400 ns against api_ns 100 ns, 1 and 3 runs");
  EXPECT_EQ(text_of(evidence_of(wall)), "roundtrip_ns, 1 run: 400 ns");
  EXPECT_EQ(text_of(evidence_of(made.add("launch/axis", "idle_share", {0.5, 0.5}))),
            "idle_share, 2 runs: 50 %");
  const Evidence without = evidence_of(*compare(&wall, &few));
  EXPECT_EQ(without.low, std::nullopt) << "one run has no interval";
  EXPECT_TRUE(evidence_of(*compare(&many, &few)).high);
}

/// What is judged of a ratio with these words.
Finding judged_of(const Ratio& ratio, const Words& words, std::string_view quantity = "the time") {
  std::vector<Finding> findings;
  const DeviceFacts device = a_device("GPU-1", "A");
  Adviser(device, "launch/axis", {}, findings).judge(ratio, quantity, words, {});
  return only(findings);
}

TEST(AdviserJudges, ByTheVerdictOfARatio) {
  Words words = {.of = "with two",
                 .than = "with one",
                 .if_more = "Take one",
                 .if_less = "Take two",
                 .if_same = "A second costs nothing"};
  Ratio ratio;
  ratio.value = 2;
  ratio.interval = stats::Interval{1.5, 2.5};
  ratio.verdict = RatioVerdict::more;
  Finding found = judged_of(ratio, words);
  EXPECT_EQ(found.sentence, "Take one: the time is 2.0 times as long with two as with one.");
  EXPECT_EQ(found.severity, Severity::act);
  ASSERT_THAT(found.evidence, SizeIs(1));
  EXPECT_THAT(found.evidence[0].name, StartsWith("time, "));
  EXPECT_THAT(judged_of(ratio, words, "all of it").evidence[0].name, StartsWith("all of it, "));
  ratio.value = 0.5;
  ratio.verdict = RatioVerdict::less;
  EXPECT_EQ(judged_of(ratio, words).sentence,
            "Take two: the time is 2.0 times shorter with two than with one.");
  ratio.verdict = RatioVerdict::no_ratio;
  EXPECT_EQ(judged_of(ratio, words).sentence,
            "The time with two cannot be compared with that with one: a median is zero.");
  EXPECT_THAT(judged_of(ratio, words, "zeit").sentence, StartsWith("Zeit with two"));
  EXPECT_THAT(judged_of(ratio, words, "{a").sentence, StartsWith("{a with two"));
  EXPECT_THAT(judged_of(ratio, words, "a").sentence, StartsWith("A with two"));
  EXPECT_THAT(judged_of(ratio, words, "`a").sentence, StartsWith("`a with two"));
  words.of = "of two";
  ratio.verdict = RatioVerdict::more;
  EXPECT_EQ(judged_of(ratio, words).sentence,
            "Take one: the time of two is 2.0 times shorter than that with one.");
}

TEST(AdviserJudges, ADifferenceThatIsTooSmallToMatterIsToldFromNone) {
  const Words words = {.of = "with two",
                       .than = "with one",
                       .if_more = "",
                       .if_less = "",
                       .if_same = "A second costs nothing"};
  Ratio ratio;
  ratio.value = 1;
  ratio.verdict = RatioVerdict::same;
  for (const auto& [low, high, told] : {std::tuple(1.0, 1.02, false),
                                        std::tuple(1.01, 1.02, true),
                                        std::tuple(0.98, 0.99, true),
                                        std::tuple(0.98, 1.0, false)}) {
    ratio.interval = stats::Interval{low, high};
    EXPECT_THAT(judged_of(ratio, words).sentence,
                StartsWith(told ? "A second costs nothing that matters here: the time is 1.00"
                                : "A second costs nothing beyond noise here: the time is 1.00"));
  }
}

TEST(AdviserSays, WithTheShareOfTheStrongestClaimOfWhatIsToBeDone) {
  std::vector<Finding> findings;
  const DeviceFacts device = a_device("GPU-1", "A");
  Adviser adviser(device, "launch/axis", {}, findings);
  using enum RatioVerdict;
  const std::vector<Comparison> claims = {
      comparison(more, 2), comparison(less, 0.25), comparison(unclear, 99)};
  const SummaryRow row = a_row("GPU-1", "launch/axis/n:2", "api_ns", {1});
  adviser.say(Severity::act, "Do it.", claims, {nullptr, &row});
  adviser.say(Severity::note, "Know it.", claims);
  adviser.say(Severity::act, "Do it.", {comparison(same, 1.01)});
  ASSERT_THAT(findings, SizeIs(3));
  EXPECT_NEAR(findings[0].share.value(), 0.75, 1e-12);
  EXPECT_THAT(findings[0].evidence, SizeIs(4));
  EXPECT_EQ(findings[0].cases, "launch/axis launch/axis/n:2") << "each once";
  EXPECT_EQ(findings[0].code, "launch-axis");
  EXPECT_EQ(findings[1].share, std::nullopt);
  EXPECT_EQ(findings[2].share, std::nullopt);
}

}  // namespace
}  // namespace launchgap
