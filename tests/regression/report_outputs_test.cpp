// What is written of a report, to the letter. tests/regression/test_report_outputs.py has those
// read it who are meant to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/regression/annotations.h"
#include "harness/regression/junit.h"
#include "harness/regression/markdown.h"
#include "harness/regression/report_json.h"
#include "harness/regression/report_words.h"
#include "harness/regression/screen.h"
#include "tests/regression/sample_reports.h"

namespace launchgap::regression {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Report one_slower(const std::string& device_name) {
  Report report = sample_report("two");
  Result& result = report.results.front();
  result.device_name = device_name;
  result.verdict = Verdict::slower;
  report.notes.clear();
  return report;
}

TEST(ReportOutputs, TheAnswerComesFirst) {
  EXPECT_EQ(
      answer_sentence(sample_report("night")),
      "2 metrics are slower: 7 metrics compared with 60 sessions each; 2 suspect, 1 erratic, 1 "
      "faster, 1 unstable, 1 to watch, 1 invalid, 3 without a baseline (driver 570.12 → "
      "575.08).");
  EXPECT_EQ(answer_sentence(sample_report("quiet")),
            "Nothing is slower: 2 metrics compared with 60 sessions each.");
  EXPECT_EQ(answer_sentence(sample_report("two")),
            "Nothing is slower: 1 metric compared with 10 runs each; 1 suspect.");
  EXPECT_EQ(answer_sentence(sample_report("invalid")),
            "The session is invalid, and nothing of it counts: it is simulated: measured on fake "
            "CUDA libraries.");
  EXPECT_EQ(answer_sentence({}), "Nothing was compared: there are no metrics.");

  Report uneven = sample_report("quiet");
  uneven.kind = Kind::pairs;
  uneven.results.front().compared_with = 8;
  EXPECT_EQ(answer_sentence(uneven),
            "Nothing is slower: 2 metrics compared with 8 to 60 pairs each.");
  for (Result& result : uneven.results) result.verdict = Verdict::no_baseline;
  EXPECT_EQ(answer_sentence(uneven), "Nothing was compared: 2 without a baseline.");
}

TEST(ReportOutputs, FalseAlarmsAreExpectedOnlyWhereAllRatesAreKnown) {
  EXPECT_EQ(false_alarm_sentence(sample_report("quiet")),
            "2 tests; 0.0014 false alarms are to be expected.");
  EXPECT_THAT(false_alarm_sentence(sample_report("two")), HasSubstr("is not known"));
  EXPECT_EQ(false_alarm_sentence({}), "");
}

TEST(ReportOutputs, AScreenNamesDevicesOnlyWhereThereAreSeveral) {
  EXPECT_EQ(screen_text(one_slower("H100")),
            "1 metric is slower: 1 metric compared with 10 runs each.\n"
            "results/tuesday against results/monday\n"
            "\n"
            "What was found:\n"
            "                       change   before      now\n"
            "  slower  +8.1 % [+7.2, +9.0]  2.00 µs  2.16 µs\n"
            "      api_ns of launch/null/api:driver/mode:idle\n"
            "\n"
            "1 test; how many false alarms are to be expected is not known: `launchgap selftest` "
            "measures it.\n");
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
  EXPECT_THAT(text, StartsWith("**1 metric is slower: 1 metric compared with 10 runs each.**\n"));
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
 "expected_false_alarms": 0.0,
 "verdicts": {
  "slower": 0,
  "suspect": 0,
  "invalid": 0,
  "no-baseline": 0,
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
