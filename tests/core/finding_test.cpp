#include "harness/core/finding.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

using namespace testing;

Finding finding(std::string code, Severity severity, std::optional<double> share = {}) {
  Finding made;
  made.code = std::move(code);
  made.severity = severity;
  made.subject = "GPU-1";
  made.sentence = "It is so.";
  made.share = share;
  return made;
}

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& one : findings) all.push_back(one.code);
  return all;
}

TEST(Findings, AreInTheOrderOfWhatIsAtStake) {
  std::vector<Finding> findings = {finding("fine", Severity::fine),
                                   finding("unknown-share", Severity::act),
                                   finding("small", Severity::act, 0.1),
                                   finding("large", Severity::act, 0.8),
                                   finding("none", Severity::act, 0.0),
                                   finding("also-unknown", Severity::act),
                                   finding("note", Severity::note, 1.0),
                                   finding("prevents", Severity::prevents)};
  sort_findings(findings);
  EXPECT_THAT(
      codes(findings),
      ElementsAre(
          "prevents", "large", "small", "none", "unknown-share", "also-unknown", "note", "fine"));
}

TEST(Findings, NamesAreReadBack) {
  for (const SeverityInfo& info : severities())
    EXPECT_EQ(name_of(parse_severity(info.name)), info.name);
  for (const FindingSourceInfo& info : finding_sources())
    EXPECT_EQ(name_of(parse_finding_source(info.name)), info.name);
  EXPECT_THROW(parse_severity("know"), Error);
  EXPECT_THROW(parse_finding_source(""), Error);
}

TEST(Findings, EvidenceIsANumberWithItsNameUnitAndInterval) {
  EXPECT_EQ(text_of(Evidence("libcuda.so.1 is a stub")), "libcuda.so.1 is a stub");
  EXPECT_EQ(text_of(Evidence("call to kernel, p50", 4.4e6, "ns")), "call to kernel, p50: 4.40 ms");
  EXPECT_EQ(text_of(Evidence("idle", 0.25, "share")), "idle: 25 %");
  EXPECT_EQ(text_of(Evidence("live", 1048576, "B")), "live: 1 MiB");
  EXPECT_EQ(text_of(Evidence("launches", 9628, "1")), "launches: 9628");
  EXPECT_EQ(text_of(Evidence("ratio", 2.63, "times", 2.5, 2.8)),
            "ratio: 2.6 times (95 % 2.5 to 2.8)");
}

TEST(Findings, TheSameAboutSeveralIsOne) {
  Finding first = finding("slow", Severity::act, 0.1), second = first, other = first;
  first.evidence = {"a", "b"};
  second.subject = "GPU-2";
  second.evidence = {"b", "c"};
  second.share = 0.3;
  other.sentence = "It is otherwise.";
  const std::vector<Finding> merged = merged_alike({first, second, other});
  ASSERT_THAT(merged, SizeIs(2));
  EXPECT_EQ(merged[0].subject, "GPU-1, GPU-2");
  EXPECT_THAT(merged[0].subjects, ElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(merged[0].evidence, SizeIs(3));
  EXPECT_EQ(merged[0].share, 0.3) << "what is at most at stake";
}

TEST(Findings, OnTheTerminalHaveEvidenceAndRemedyAndNotesALine) {
  Finding grave = finding("queue-full", Severity::act, 0.5);
  grave.source = FindingSource::cause;
  grave.evidence = {Evidence("launches", 12, "1")};
  grave.remedy = "Launch less at once.";
  grave.unknown = "how deep the queue is";
  Finding note = finding("small", Severity::note);
  note.evidence = {"hidden"};
  const std::string text = findings_text({grave, note}, {});
  EXPECT_THAT(text, HasSubstr("act       queue-full\n"));
  EXPECT_THAT(text, HasSubstr("evidence launches: 12\n"));
  EXPECT_THAT(text, HasSubstr("fix Launch less at once.\n"));
  EXPECT_THAT(text, HasSubstr("unknown how deep the queue is\n"));
  EXPECT_THAT(text, HasSubstr("note      It is so. [small]\n"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(findings_text({grave}, {.colour = true}), HasSubstr("\x1b[1;33m"));
}

}  // namespace
}  // namespace launchgap
