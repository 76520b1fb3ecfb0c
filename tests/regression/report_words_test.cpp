// At the limits of what is said of a report. report_outputs_test.cpp has each form as a whole.
#include "harness/regression/report_words.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "harness/regression/report.h"
#include "harness/rules/nights.h"
#include "tests/regression/sample_reports.h"

namespace launchgap::regression {
namespace {

using namespace testing;

/// One result of a report of two sessions, 8.1 % slower and suspect.
Result a_result(Verdict verdict = Verdict::suspect, double change = 0.081) {
  Result result = sample_report("two").results.front();
  result.verdict = verdict;
  result.change = change;
  result.interval.reset();
  return result;
}

Report a_report(std::vector<Result> results, Kind kind = Kind::sessions) {
  Report report;
  report.kind = kind;
  report.results = std::move(results);
  return report;
}

Result of_metric(Result result, const char* metric) {
  result.key.metric = metric;
  return result;
}

TEST(ReportWords, ChangesAreSortedWithTheSlowestFirstByTheDirectionOfTheMetric) {
  const std::vector<KeyChange> driver = {{"driver", "1", "2"}}, kernel = {{"kernel", "", "6.2"}};
  Report report = a_report({a_result(Verdict::same, 0.01),
                            of_metric(a_result(Verdict::same, -0.05), "tflops"),
                            a_result(Verdict::faster, -0.125),
                            a_result(Verdict::suspect, 0.25)});
  for (Result& result : report.results) result.changed = driver;
  report.results.back().changed = kernel;
  const std::vector<Group> groups = changed(report);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].what, "kernel unknown → 6.2") << "the slowest of all";
  EXPECT_EQ(change_sentence(groups[0]),
            "Changed with kernel unknown → 6.2: +25.0 % (api_ns of "
            "launch/null/api:driver/mode:idle).");
  EXPECT_EQ(change_sentence(groups[1]),
            "Changed with driver 1 → 2: 3 metrics, from -5.0 % (tflops of "
            "launch/null/api:driver/mode:idle) to -12.5 %.")
      << "fewer operations per second are slower";
  EXPECT_EQ(range_text(groups[1]), "3 metrics, from -5.0 % to -12.5 %");
}

TEST(ReportWords, AChangeIsOfWhatHasOneAndWasComparedWithWhatWasBeforeIt) {
  Result result = a_result(Verdict::same, 0.01);
  result.changed = {{"driver", "1", "2"}};
  EXPECT_THAT(changed(a_report({result})), SizeIs(1));
  EXPECT_THAT(changed(a_report({result}, Kind::history)), IsEmpty()) << "it is as its level";
  result.verdict = Verdict::suspect;
  EXPECT_THAT(changed(a_report({result}, Kind::history)), SizeIs(1));
  result.change.reset();
  EXPECT_THAT(changed(a_report({result})), IsEmpty());
}

TEST(ReportWords, WhatLacksABaselineSaysWhatChangedIfThatIsOneThing) {
  const auto said = [](const std::vector<std::vector<KeyChange>>& changes) {
    std::vector<Result> results;
    for (const std::vector<KeyChange>& change : changes) {
      results.push_back(a_result(Verdict::no_baseline));
      results.back().changed = change;
    }
    results.push_back(a_result(Verdict::watch));
    results.back().changed = {{"of another", "a", "b"}};
    return answer_sentence(a_report(results));
  };
  const std::vector<KeyChange> driver = {{"driver", "1", "2"}}, kernel = {{"kernel", "3", "4"}};
  EXPECT_THAT(said({driver, driver}),
              EndsWith(": 1 to watch, 2 without a baseline (driver 1 → 2)."));
  EXPECT_THAT(said({driver, {}}), EndsWith("2 without a baseline (1 of them: driver 1 → 2)."));
  EXPECT_THAT(said({driver, kernel}), EndsWith("2 without a baseline (of several fingerprints)."));
  EXPECT_THAT(said({{}, {}}), EndsWith("2 without a baseline."));
}

TEST(ReportWords, DepthIsOfWhatWasComparedAlone) {
  Result deep = a_result(Verdict::same), shallow = a_result(Verdict::faster),
         other = a_result(Verdict::watch);
  deep.compared_with = 9, shallow.compared_with = 1, other.compared_with = 50;
  EXPECT_THAT(answer_sentence(a_report({deep, other})), HasSubstr("compared with 9 runs each;"));
  EXPECT_THAT(answer_sentence(a_report({deep, shallow}, Kind::pairs)),
              HasSubstr("compared with 1 to 9 pairs each;"));
  EXPECT_THAT(answer_sentence(a_report({shallow}, Kind::history)),
              HasSubstr("compared with 1 session each;"));
  shallow.compared_with = 0;
  EXPECT_THAT(answer_sentence(a_report({shallow})), HasSubstr("1 measurement compared; 1 faster."));
}

TEST(ReportWords, ATailIsCountedApartUnlessTheResultIsErratic) {
  Result tail = a_result(Verdict::same);
  tail.tail = 2;
  Result both = tail;
  both.steadiness = Steadiness::erratic;
  EXPECT_THAT(answer_sentence(a_report({tail, both})),
              EndsWith("; 1 erratic, 1 with a longer tail."));
  EXPECT_EQ(short_verdict(tail), "tail");
  EXPECT_EQ(short_verdict(both), "erratic");
  both.verdict = Verdict::suspect;
  EXPECT_EQ(short_verdict(both), "suspect") << "graver than erratic";
  both.verdict = Verdict::faster;
  EXPECT_EQ(short_verdict(both), "erratic");
  tail.verdict = Verdict::faster;
  EXPECT_EQ(short_verdict(tail), "faster");
}

TEST(ReportWords, MediansAreEqualBelowTheSmallestChangeThatCounts) {
  Result result = a_result(Verdict::same);
  result.tail = 2;
  result.p99 = 2000, result.baseline_p99 = 1000;
  const auto said = [&](std::optional<double> minimum, std::optional<double> change, int hits) {
    result.minimum = minimum;
    result.change = change;
    result.hits = hits;
    const std::string text = tail_text(result);
    return text.substr(text.find("; ") + 2);
  };
  EXPECT_EQ(said(0.125, 0.124, 0), "medians equal");
  EXPECT_EQ(said(0.125, 0.125, 0), "median +12.5 %");
  EXPECT_EQ(said(0.125, -0.25, 0), "median -25.0 %");
  EXPECT_EQ(said(0.125, {}, 0), "medians equal");
  EXPECT_EQ(said(0.125, 0.01, 1), "median +1.0 %");
  EXPECT_EQ(said({}, rules::kNightLeastChange, 0), "median +3.0 %");
  EXPECT_EQ(said({}, 0.0299, 0), "medians equal");
}

TEST(ReportWords, TheWorstThreeAreNamed) {
  const auto said = [](std::size_t slower) {
    std::vector<Result> results(slower, a_result(Verdict::slower));
    for (std::size_t i = 0; i < slower; ++i)
      results[i].key.metric = fmt::format("m{}", i), results[i].change = 0.5 - 0.01 * double(i);
    results.insert(results.begin(), a_result(Verdict::suspect, 0.9));
    const std::string text = answer_sentence(a_report(results));
    return text.substr(0, text.find(". Compared"));
  };
  const std::string of = " of launch/null/api:driver/mode:idle";
  EXPECT_EQ(said(1), "1 of 2 measurements is slower: m0" + of);
  EXPECT_EQ(said(3), "3 of 4 measurements are slower: m0" + of + ", m1" + of + ", m2" + of);
  EXPECT_EQ(said(4),
            "4 of 5 measurements are slower: m0" + of + ", m1" + of + ", m2" + of + " and 1 more");
}

TEST(ReportWords, RatesOfFalseAlarms) {
  std::vector<Result> results(4, a_result(Verdict::same));
  results[0].power = MeasuredPower{0.25, {}, {}};
  results[1].power = MeasuredPower{0.5, {}, {}};
  EXPECT_EQ(false_alarm_sentence(a_report(results, Kind::pairs)),
            "4 tests; 0.75 false alarms are to be expected of 2 of them; 2 have no measured rate "
            "of false alarms: `launchgap selftest` measures it.");
  EXPECT_EQ(false_alarm_sentence(a_report({results[2]}, Kind::sessions)),
            "1 test; none has a measured rate of false alarms.");
  results[3].verdict = Verdict::watch;  // is no test
  EXPECT_THAT(false_alarm_sentence(a_report(results)),
              StartsWith("3 tests; 0.75 false alarms are to be expected of 2 of them; 1 has no "));
}

TEST(ReportWords, WhatWasFoundIsInTheOrderOfItsGravity) {
  std::vector<Result> results;
  const auto add = [&](const char* metric, Verdict verdict, Steadiness steadiness, double tail) {
    Result result = of_metric(a_result(verdict, 0.1), metric);
    result.steadiness = steadiness;
    if (tail > 0) result.tail = tail;
    results.push_back(result);
  };
  add("same", Verdict::same, Steadiness::same, 0);
  add("steadier", Verdict::same, Steadiness::steadier, 0);
  add("tail", Verdict::same, Steadiness::same, 2);
  add("watch", Verdict::watch, Steadiness::same, 0);
  add("faster", Verdict::faster, Steadiness::same, 0);
  add("erratic", Verdict::same, Steadiness::erratic, 0);
  add("cannot-tell", Verdict::cannot_tell, Steadiness::same, 0);
  add("suspect", Verdict::suspect, Steadiness::erratic, 0);
  add("slower", Verdict::slower, Steadiness::same, 0);
  const Report report = a_report(results);
  std::vector<std::string> metrics;
  for (const Result* const result : found(report)) metrics.push_back(result->key.metric);
  EXPECT_THAT(metrics,
              ElementsAre("slower", "suspect", "erratic", "cannot-tell", "faster", "tail"));
}

TEST(ReportWords, WhatIsNotJudgedIsCountedByWhy) {
  std::vector<Result> results;
  const auto add = [&](Verdict verdict, const char* reason, std::vector<KeyChange> changed = {}) {
    results.push_back(a_result(verdict));
    results.back().reason = reason;
    results.back().changed = std::move(changed);
  };
  add(Verdict::watch, "few");
  add(Verdict::no_baseline, "", {{"driver", "1", "2"}});
  add(Verdict::watch, "zero");
  add(Verdict::no_baseline, "new", {{"driver", "1", "2"}});
  add(Verdict::watch, "zero");
  add(Verdict::unstable, "");
  add(Verdict::cannot_tell, "said elsewhere");
  const Report report = a_report(results);
  std::vector<std::string> said;
  for (const Group& group : not_judged(report))
    said.push_back(fmt::format("{} {}", group.results.size(), group.what));
  EXPECT_THAT(said,
              ElementsAre("1 no-baseline: driver 1 → 2",
                          "1 no-baseline: new",
                          "1 unstable",
                          "2 watch: zero",
                          "1 watch: few"));
}

TEST(ReportWords, ACutTextIsNeverLongerThanItsLimit) {
  const std::string text =
      "one\ntwo\nthree\nand so on until it is longer than what is said of it\n";
  const std::string cut = "… the rest is left out: it is too long.\n";
  EXPECT_EQ(cut_at_line(text, text.size()), text);
  EXPECT_EQ(cut_at_line(text, cut.size() + 8), "one\ntwo\n" + cut);
  EXPECT_EQ(cut_at_line(text, cut.size() + 7), "one\n" + cut);
  EXPECT_EQ(cut_at_line(text, cut.size() + 4), "one\n" + cut);
  EXPECT_EQ(cut_at_line(text, cut.size() + 3), cut);
  EXPECT_EQ(cut_at_line(text, cut.size()), cut);
  EXPECT_EQ(cut_at_line(text, 5), cut.substr(0, 5));
  EXPECT_EQ(cut_at_line(text, 0), "");
}

/// So many suspect results, of different reasons not to be judged, and notes.
Report a_long_report(std::size_t count, Verdict verdict) {
  Report report = a_report(std::vector<Result>(count, a_result(verdict)));
  for (std::size_t i = 0; i < count; ++i) {
    report.results[i].reason = fmt::format("why {}", i);
    report.notes.push_back(fmt::format("Note {}.", i));
  }
  return report;
}

TEST(ReportWords, OfReasonsNotesAndEqualOnesSoManyAreShown) {
  const auto screen = [](std::size_t count, Verdict verdict) {
    return screen_text(a_long_report(count, verdict));
  };
  EXPECT_THAT(screen(6, Verdict::watch), Not(HasSubstr("other reason")));
  EXPECT_THAT(screen(6, Verdict::watch), HasSubstr("    1 watch: why 5\n"));
  EXPECT_THAT(screen(7, Verdict::watch), HasSubstr("      and for 1 other reason, in --json\n"));
  EXPECT_THAT(screen(10, Verdict::same), Not(HasSubstr("which differ by less")));
  EXPECT_THAT(screen(11, Verdict::same), HasSubstr("  and 1 more, which differ by less\n"));
  EXPECT_THAT(screen(12, Verdict::same), Not(HasSubstr("other note")));
  EXPECT_THAT(screen(13, Verdict::same), HasSubstr("Note 11.\nIn --json: 1 other note.\n"));

  const auto table = [](std::size_t count) {
    return markdown(a_long_report(count, Verdict::watch));
  };
  EXPECT_THAT(table(8), AllOf(HasSubstr("\nNote 7.\n"), Not(HasSubstr("other"))));
  EXPECT_THAT(table(9), AllOf(HasSubstr("- and for 1 other reason\n"), HasSubstr("\nNote 7.\n")));
  EXPECT_THAT(table(9), AllOf(HasSubstr("\nLeft out: 1 note.\n"), Not(HasSubstr("Note 8"))));
}

TEST(ReportWords, AScreenSaysWhatIsSteadierOrErratic) {
  Report report = a_report({a_result(Verdict::same), a_result(Verdict::same)});
  EXPECT_THAT(screen_text(report), Not(HasSubstr("Steadiness")));
  report.results[0].steadiness = Steadiness::steadier;
  EXPECT_THAT(screen_text(report),
              HasSubstr("Steadiness: 0 erratic, 1 steadier; watched, not gated.\n"));
  report.results[0].steadiness = Steadiness::erratic;
  report.strictness.gate_spread = true;
  EXPECT_THAT(screen_text(report),
              HasSubstr("Steadiness: 1 erratic, 0 steadier; what is erratic fails.\n"));
}

TEST(ReportWords, NodesAreNamedWhereThereAreSeveral) {
  Report report = a_report({a_result(), a_result()});
  report.results[0].node = "n1";
  report.results[1].node = "n2";
  EXPECT_THAT(screen_text(report), HasSubstr(" on n1\n"));
  report.results[1].node = "n1";
  EXPECT_THAT(screen_text(report), Not(HasSubstr("n1")));
}

TEST(ReportWords, AnUnderscoreWithinAWordIsNoMark) {
  const auto noted = [](const char* text) {
    Report report;
    report.notes = {text};
    const std::string written = markdown(report);
    const std::size_t begin = written.rfind("\n\n") + 2;
    return written.substr(begin, written.rfind('\n') - begin);
  };
  EXPECT_EQ(noted("a_b"), "a_b");
  EXPECT_EQ(noted("_b a_ a_-"), "\\_b a\\_ a\\_-");
  EXPECT_EQ(noted("a<b>&@c"), "a&lt;b&gt;&amp;&#64;c");
}

}  // namespace
}  // namespace launchgap::regression
