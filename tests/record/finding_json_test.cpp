#include "harness/record/finding_json.h"

#include <gtest/gtest.h>

namespace launchgap {
namespace {

TEST(FindingJson, IsReadBackWhole) {
  Finding finding;
  finding.source = FindingSource::cause;
  finding.code = "queue-full";
  finding.severity = Severity::act;
  finding.subject = "NVIDIA A100";
  finding.sentence = "The queue is full.";
  finding.evidence = {"in words", Evidence("time", 12.5, "ns", 11, 14)};
  finding.remedy = "Launch less.";
  finding.share = 0.25;
  finding.unknown = "how deep it is";
  finding.device = "GPU-1";
  finding.replicate = 2;
  finding.cases = "a b";
  finding.symptoms = {"seen"};
  finding.subjects = {"a", "b"};
  const Json json = to_json(finding);
  EXPECT_EQ(to_json(finding_from_json(json)), json);
  EXPECT_EQ(finding_from_json(json).evidence, finding.evidence);
}

TEST(FindingJson, WhatOlderSessionsLackIsLeftOut) {
  const Finding finding = finding_from_json(parse_json(
      R"({"code": "no-gpu", "severity": "note", "subject": "machine", "sentence": "There is none.",
          "evidence": ["PCI shows none"], "remedy": ""})"));
  EXPECT_EQ(finding.source, FindingSource::doctor);
  EXPECT_EQ(finding.evidence.at(0).name, "PCI shows none");
  EXPECT_FALSE(finding.share);
}

TEST(FindingJson, WhatIsNoneIsAnErrorThatNamesTheField) {
  for (const char* text : {R"("text")",
                           "null",
                           R"({"code": 7, "severity": "note", "sentence": ""})",
                           R"({"code": "a", "severity": "grave", "sentence": ""})",
                           R"({"code": "a", "severity": "note"})",
                           R"({"code": "a", "severity": "note", "sentence": "", "evidence": "b"})",
                           R"({"code": "a", "severity": "note", "sentence": "", "evidence": [7]})"})
    EXPECT_THROW(finding_from_json(parse_json(text)), Error) << text;
}

}  // namespace
}  // namespace launchgap
