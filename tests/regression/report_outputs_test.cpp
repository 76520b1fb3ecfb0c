// What is written of a report, to the letter. tests/regression/test_report_outputs.py has those
// read it who are meant to.
#include <gmock/gmock.h>

#include "harness/regression/report.h"
#include "harness/regression/report_words.h"
#include "tests/regression/sample_reports.h"

namespace launchgap::regression {
namespace {

using namespace testing;

Report one_slower(const std::string& device_name) {
  Report report = sample_report("two");
  Result& result = report.results.front();
  result.device_name = device_name;
  result.verdict = Verdict::slower;
  report.notes.clear();
  return report;
}

TEST(ReportOutputs, TheAnswerComesFirst) {
  EXPECT_EQ(answer_sentence(sample_report("night")),
            "2 of 8 measurements are slower: per_launch_ns of launch/null/api:driver/mode:burst, "
            "api_ns of "
            "launch/null/api:driver/mode:idle. Compared with 60 sessions each; 2 suspect, 1 "
            "erratic, 1 with "
            "a longer tail, 1 faster, 1 that cannot be told, 1 unstable, 1 to watch, 1 invalid, 3 "
            "without a "
            "baseline (2 of them: driver 570.12 → 575.08).");
  EXPECT_EQ(answer_sentence(sample_report("quiet")),
            "Nothing is slower: 2 measurements compared with 60 sessions each.");
  EXPECT_EQ(answer_sentence(sample_report("two")),
            "Nothing is slower: 1 measurement compared with 10 runs each; 1 suspect.");
  EXPECT_EQ(answer_sentence(sample_report("invalid")),
            "The session is invalid, and nothing of it counts: it is simulated: measured on fake "
            "CUDA libraries.");
  EXPECT_EQ(answer_sentence({}), "Nothing was compared: there are no metrics.");

  Report uneven = sample_report("quiet");
  uneven.kind = Kind::pairs;
  uneven.results.front().compared_with = 8;
  EXPECT_EQ(answer_sentence(uneven),
            "Nothing is slower: 2 measurements compared with 8 to 60 pairs each.");
  for (Result& result : uneven.results) result.verdict = Verdict::no_baseline;
  EXPECT_EQ(answer_sentence(uneven), "Nothing was compared: 2 without a baseline.");
  uneven.results.front().verdict = Verdict::cannot_tell;
  EXPECT_EQ(answer_sentence(uneven),
            "These runs cannot tell whether anything is slower: 1 that cannot be told, 1 without a "
            "baseline.");
}

TEST(ReportOutputs, OfManySlowerOnesTheWorstAreNamed) {
  Report report = one_slower("H100");
  for (const char* const metric : {"roundtrip_ns", "flag_ns", "launch_ns", "queue_ns"}) {
    report.results.push_back(report.results.front());
    report.results.back().key.metric = metric;
  }
  EXPECT_THAT(
      answer_sentence(report),
      HasSubstr("5 of 5 measurements are slower: api_ns of launch/null/api:driver/mode:idle, "
                "roundtrip_ns of launch/null/api:driver/mode:idle, flag_ns of "
                "launch/null/api:driver/mode:idle and 2 more. Compared with"));
}

TEST(ReportOutputs, ALongerTailIsALineAndTheMedianBesideIt) {
  Report report = one_slower("H100");
  Result& result = report.results.front();
  result.tail = 146;
  result.baseline_p99 = 335;
  result.p99 = 48'700;
  EXPECT_EQ(tail_text(result), "p99 146 times as long (335 ns → 48.7 µs); median +8.1 %");
  result.verdict = Verdict::same;
  result.hits = 1;  // the first of three
  EXPECT_EQ(tail_text(result), "p99 146 times as long (335 ns → 48.7 µs); median +8.1 %");
  result.hits = 0;
  EXPECT_EQ(tail_text(result), "p99 146 times as long (335 ns → 48.7 µs); median +8.1 %");
  result.change = 0.001;
  EXPECT_EQ(tail_text(result), "p99 146 times as long (335 ns → 48.7 µs); medians equal");
  for (const std::string& text :
       {screen_text(report), markdown(report), github_annotations(report)})
    EXPECT_THAT(text, HasSubstr("p99 146 times as long"));
  EXPECT_EQ(report.exit_code(), ExitCode::done) << "reported, and no failure by itself";
}

TEST(ReportOutputs, FalseAlarmsAreOfTheTestsThatHaveARate) {
  EXPECT_EQ(false_alarm_sentence(sample_report("quiet")),
            "2 tests; 0.0014 false alarms are to be expected.");
  EXPECT_EQ(false_alarm_sentence(sample_report("two")),
            "1 test; none has a measured rate of false alarms.");
  Report some = sample_report("quiet");
  some.results.front().power.reset();
  EXPECT_EQ(
      false_alarm_sentence(some),
      "2 tests; 0.0007 false alarms are to be expected of 1 of them; 1 has no measured rate of "
      "false alarms: `launchgap selftest --history` measures it from 40 nights on.");
  EXPECT_EQ(false_alarm_sentence({}), "");
}

TEST(ReportOutputs, AScreenNamesDevicesOnlyWhereThereAreSeveral) {
  EXPECT_EQ(
      screen_text(one_slower("H100")),
      "1 of 1 measurement is slower: api_ns of launch/null/api:driver/mode:idle. Compared with "
      "10 runs\neach.\n"
      "results/tuesday against results/monday\n"
      "\n"
      "What was found:\n"
      "                       change   before      now\n"
      "  slower  +8.1 % [+7.2, +9.0]  2.00 µs  2.16 µs\n"
      "      api_ns of launch/null/api:driver/mode:idle\n"
      "\n"
      "1 test; none has a measured rate of false alarms.\n");
  Report report = one_slower("H100");
  report.results.push_back(report.results.front());
  report.results.back().key.where.device = "GPU-11111111-2222-3333-4444-555555555509";
  EXPECT_THAT(screen_text(report),
              HasSubstr("on H100 (GPU-11111111-2222-3333-4444-555555555509)\n"))
      << "a UUID is as long as it must be";
  report.results.back().key.where.device = "GPU-9";
  EXPECT_THAT(screen_text(report), HasSubstr("on H100 (GPU-11111111)\n"));
}

TEST(ReportOutputs, AScreenHasNoCommandsForGitHub) {
  Report report = one_slower("H100");
  report.results.front().reason = "::error::x ##[error]y :: z";
  EXPECT_THAT(screen_text(report), HasSubstr("\n      : :error::x ## [error]y :: z\n"));
}

TEST(ReportOutputs, JUnitIsXmlWhateverANameHas) {
  const std::string xml = junit_xml(one_slower("A<&>\"'\x01\n\xff\xEF\xBF\xBE"));
  EXPECT_THAT(xml, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
  EXPECT_THAT(xml,
              HasSubstr(", A&lt;&amp;&gt;&quot;&apos;\\x01\\n\\xff\xEF\xBF\xBD (GPU-11111111"));
  EXPECT_THAT(
      xml,
      HasSubstr("      <failure type=\"slower\" message=\"slower: +8.1 % [+7.2, +9.0], 2.00 µs "
                "→ 2.16 µs\"/>\n    </testcase>\n"));
}

TEST(ReportOutputs, OneSlowerMeasurementIsARegression) {
  Report report = one_slower("H100");
  report.results.resize(1);
  EXPECT_EQ(report.exit_code(), ExitCode::regression);
  report.results.front().verdict = Verdict::same;
  EXPECT_EQ(report.exit_code(), ExitCode::done);
}

TEST(ReportOutputs, WhatFailsDependsOnWhatIsAskedFor) {
  Report report = sample_report("strict");
  EXPECT_THAT(junit_xml(report),
              HasSubstr("<failure type=\"no-baseline\" message=\"no-baseline: 3 of 20"));
  report.strictness.require_baseline = false;
  EXPECT_THAT(junit_xml(report), HasSubstr("<skipped message=\"no-baseline: 3 of 20 sessions\"/>"));
  report = sample_report("erratic");
  EXPECT_THAT(junit_xml(report), HasSubstr("<failure type=\"erratic\""));
  EXPECT_THAT(github_annotations(report), StartsWith("::error title=erratic%3A api_ns of "));
  report.strictness.gate_spread = false;
  EXPECT_THAT(junit_xml(report), Not(HasSubstr("<failure")));
  EXPECT_THAT(github_annotations(report), StartsWith("::warning title=erratic%3A api_ns of "));
}

TEST(ReportOutputs, AnnotationsAreEscapedAsGitHubWantsIt) {
  EXPECT_EQ(
      github_annotations(one_slower("100%,\n::error::")),
      "::error title=slower%3A api_ns of launch/null/api%3Adriver/mode%3Aidle::100%25,\\n::error:: "
      "(GPU-11111111-2222-3333-4444-555555555501) on node17: +8.1 %25 [+7.2, +9.0], 2.00 µs → "
      "2.16 µs\n");
  EXPECT_EQ(
      github_annotations(sample_report("invalid")),
      "::error title=launchgap%3A the session is invalid::it is simulated: measured on fake CUDA "
      "libraries\n");
  EXPECT_EQ(github_annotations(sample_report("quiet")), "");
}

TEST(ReportOutputs, MarkdownHasNoMarksButItsOwn) {
  const std::string text = markdown(one_slower("a|b <i> `c` _d_ e_f @g [h](i) *j*"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "| a\\|b &lt;i&gt; \\`c\\` \\_d\\_ e_f &#64;g \\[h\\](i) \\*j\\* (GPU-11111111-2222-"));
  EXPECT_THAT(
      text,
      StartsWith("**1 of 1 measurement is slower: api_ns of launch/null/api:driver/mode:idle. "
                 "Compared with 10 runs each.**\n"));
}

TEST(ReportOutputs, ScreenAndMarkdownShowSoManyAndSayHowManyMore) {
  const auto slower = [](std::size_t count, std::size_t changes) {
    Report report = one_slower("H100");
    for (std::size_t i = 1; i < count; ++i) report.results.push_back(report.results.front());
    for (std::size_t i = 0; i < count; ++i) {
      report.results[i].change = 0.1;
      report.results[i].changed = {{"driver", "1", std::to_string(2 + i % changes)}};
    }
    return report;
  };
  EXPECT_THAT(markdown(slower(10, 1)), Not(HasSubstr("The worst")));
  EXPECT_THAT(markdown(slower(11, 1)), HasSubstr("The worst 10 of 11."));
  EXPECT_THAT(markdown(slower(5, 1)), Not(HasSubstr("- and ")));
  EXPECT_THAT(markdown(slower(6, 1)), HasSubstr("- and 1 more\n"));
  EXPECT_THAT(markdown(slower(8, 8)), Not(HasSubstr("Left out")));
  EXPECT_THAT(markdown(slower(9, 9)), HasSubstr("\nLeft out: 1 other change.\n"));

  EXPECT_THAT(screen_text(slower(10, 1)), HasSubstr("What was found:"));
  EXPECT_THAT(screen_text(slower(11, 1)), HasSubstr("The worst 10 of 11:"));
  EXPECT_THAT(screen_text(slower(5, 1)), Not(HasSubstr("  and 1")));
  EXPECT_THAT(screen_text(slower(6, 1)), HasSubstr("  and 1 more\n"));
  EXPECT_THAT(screen_text(slower(6, 6)), Not(HasSubstr("other change")));
  EXPECT_THAT(screen_text(slower(8, 8)), HasSubstr("\nIn --json: 2 other changes.\n"));
}

TEST(ReportOutputs, WhatIsTooLongIsCutAtALine) {
  EXPECT_EQ(cut_at_line("one\ntwo\n", 8), "one\ntwo\n");
  const std::string cut =
      cut_at_line(std::string(50, 'a') + "\n" + std::string(50, 'b') + "\n", 100);
  EXPECT_THAT(cut, StartsWith(std::string(50, 'a') + "\n… the rest is left out"));
  EXPECT_THAT(cut, EndsWith("\n"));
  EXPECT_LE(cut.size(), 100u);
  EXPECT_EQ(cut_at_line(std::string(100, 'a'), 60), "… the rest is left out: it is too long.\n");
}

TEST(ReportOutputs, JsonLeavesOutWhatIsAbsent) {
  const std::string json = report_json(sample_report("empty"));
  EXPECT_EQ(json,
            R"({
 "schema": "launchgap/1",
 "record": "check",
 "kind": "history",
 "exit_code": 0,
 "require_baseline": false,
 "gate_spread": false,
 "tests": 0,
 "tests_without_rate": 0,
 "verdicts": {
  "slower": 0,
  "suspect": 0,
  "invalid": 0,
  "no-baseline": 0,
  "cannot-tell": 0,
  "unstable": 0,
  "watch": 0,
  "faster": 0,
  "same": 0
 },
 "steadiness": {
  "erratic": 0,
  "same": 0,
  "steadier": 0
 },
 "notes": [],
 "results": []
}
)");
  const std::string hostile = report_json(sample_report("hostile"));
  EXPECT_THAT(hostile, Not(HasSubstr("null,")));
  EXPECT_THAT(hostile, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace launchgap::regression
