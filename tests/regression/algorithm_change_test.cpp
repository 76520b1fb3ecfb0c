#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/regression/fingerprint.h"

namespace launchgap::regression {
namespace {

EarlierAlgorithms sessions(std::initializer_list<std::pair<int, Algorithms>> of) {
  EarlierAlgorithms earlier;
  for (const auto& [count, algorithms] : of) {
    for (int i = 0; i < count; ++i) earlier.add(algorithms);
  }
  return earlier;
}

TEST(AlgorithmChange, IsFromTheMostFrequent) {
  const auto change = sessions({{6, {"a", "b"}}, {5, {"a"}}}).change_to({"c"});
  ASSERT_TRUE(change);
  EXPECT_EQ(*change, (KeyChange{"algorithm", "a or b", "c"}));
}

TEST(AlgorithmChange, OneThatEachTenthSessionHadIsUsual) {
  EXPECT_FALSE(sessions({{18, {"a"}}, {2, {"b"}}}).change_to({"b"}));
  EXPECT_TRUE(sessions({{19, {"a"}}, {1, {"b"}}}).change_to({"b"}));
  EXPECT_TRUE(sessions({{19, {"a"}}, {1, {"b"}}}).change_to({"a", "b"})) << "beside the usual one";
}

TEST(AlgorithmChange, WhatIsNotKnownHasNotChanged) {
  EXPECT_FALSE(EarlierAlgorithms().change_to({"a"}));
  EXPECT_FALSE(sessions({{20, {}}}).change_to({"a"}));
  EXPECT_FALSE(sessions({{20, {"a"}}}).change_to({}));
}

TEST(AlgorithmChange, SessionsThatKnowOfNoneDoNotCount) {
  EXPECT_FALSE(sessions({{50, {}}, {1, {"a"}}}).change_to({"a"}));
  EXPECT_TRUE(sessions({{50, {}}, {1, {"a"}}}).change_to({"b"}));
}

Result computed(Verdict verdict, const char* name, const char* from, const char* to) {
  Result result;
  result.key.where.name = CaseName::parse(name);
  result.verdict = verdict;
  result.algorithm = KeyChange{"algorithm", from, to};
  return result;
}

TEST(NoteAlgorithms, CountsCasesAndNotMetrics) {
  Report report;
  note_algorithms(report);
  report.results.push_back(computed(Verdict::slower, "matmul/library/size:64", "a", "b"));
  note_algorithms(report);
  EXPECT_THAT(report.notes, testing::IsEmpty()) << "a slowdown says it itself";
  report.results.push_back(computed(Verdict::same, "matmul/library/size:256", "a", "b"));
  report.results.push_back(computed(Verdict::same, "matmul/library/size:256", "a", "b"));
  note_algorithms(report);
  report.results.push_back(computed(Verdict::same, "matmul/library/size:512", "a", "c"));
  note_algorithms(report);
  EXPECT_THAT(report.notes,
              testing::ElementsAre(
                  "Another algorithm at the same speed: matmul/library/size:256 (a → b).",
                  "Another algorithm at the same speed: matmul/library/size:256 (a → b), and 1 "
                  "case more."));
}

}  // namespace
}  // namespace launchgap::regression
