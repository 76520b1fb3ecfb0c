#include "harness/summary/selections.h"

#include <gmock/gmock.h>

#include "harness/record/records.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr const char* kGet = "cudnnGetConvolutionForwardAlgorithm_v7";
constexpr const char* kFind = "cudnnFindConvolutionForwardAlgorithmEx";

/// A session in which a library selected algorithms.
struct Selections : WrittenSession {
  struct Selected {
    int candidate;
    const char* algorithm;
    int times;
    std::optional<double> median_ns;
  };

  /// What the calls of one process selected.
  void process(const std::string& case_name, const std::vector<Selected>& selected) {
    process(case_name, {{kGet, selected}});
  }
  void process(const std::string& case_name,
               const std::vector<std::pair<const char*, std::vector<Selected>>>& calls) {
    RecordWriter writer = begin_run("GPU-1", "plain", "convolution", replicate_++);
    for (const auto& [by, selected] : calls) {
      for (const Selected& one : selected) {
        Choice choice;
        choice.case_name = case_name;
        choice.by = by;
        choice.candidate = one.candidate;
        choice.algorithm = one.algorithm;
        choice.times = one.times;
        choice.median_ns = one.median_ns;
        choice.outcome = "selected";
        writer.write(record_to_json(choice));
      }
    }
    summary(writer, case_name, "ok");
    end(writer);
  }

  int replicate_ = 0;
};

TEST_F(Selections, ThatAreAlwaysTheSameAreCountedAndNoFinding) {
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 20, 100}});
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 20, 140}});
  const SessionData session = read();
  const auto counts = selection_counts(session);
  ASSERT_THAT(counts, SizeIs(1));
  EXPECT_EQ(counts[0].selections, 40);
  EXPECT_EQ(counts[0].processes, 2);
  EXPECT_EQ(counts[0].algorithm, "1 (GEMM)");
  EXPECT_EQ(counts[0].flip_rate(), 0);
  EXPECT_EQ(counts[0].others_times, std::nullopt);
  EXPECT_THAT(selection_findings(session), IsEmpty());
}

TEST_F(Selections, ThatDifferCostWhatTheOthersTakeLonger) {
  for (int i = 0; i < 3; ++i)
    process("convolution/selection/shape:a",
            {{kGet, {{0, "1 (GEMM)", 13, 100}, {1, "0 (direct)", 7, 190}}},
             {kFind, {{0, "1 (GEMM)", 20, 100}}}});
  const SessionData session = read();
  const auto counts = selection_counts(session);
  ASSERT_THAT(counts, SizeIs(2)) << "each call of its own";
  EXPECT_EQ(counts[0].by, kFind);
  EXPECT_EQ(counts[0].others, 0);
  EXPECT_EQ(counts[1].others, 21);
  EXPECT_DOUBLE_EQ(counts[1].flip_rate(), 0.35);
  EXPECT_DOUBLE_EQ(counts[1].flip_rate_within(), 0.35);
  EXPECT_EQ(counts[1].other_processes, 0);
  EXPECT_DOUBLE_EQ(*counts[1].others_times, 1.9);
  const Finding found = only(said(selection_findings(session)));
  EXPECT_EQ(in_words(found),
            "act selection-differs: "
            "cudnnGetConvolutionForwardAlgorithm_v7 does not always select the same algorithm for "
            "a convolution: 21 of 60 times it was another than the usual one, and took 1.90 times "
            "as long. So convolutions differ between runs.");
  ASSERT_THAT(found.evidence, SizeIs(1));
  EXPECT_EQ(text_of(found.evidence[0]),
            "convolution/selection/shape:a: 21 of 60 selections in 3 processes are not 1 (GEMM): "
            "35 %");
  EXPECT_NEAR(*found.share, 21 * 0.9 / (60 + 21 * 0.9), 1e-9);
  EXPECT_EQ(found.cases, "convolution/selection/shape:a");
}

TEST_F(Selections, OfWhichTheUsualOneTakesLongestAreNotToBeKept) {
  for (int i = 0; i < 3; ++i)
    process("convolution/selection/shape:a",
            {{kFind, {{0, "4 (FFT)", 19, 100}, {1, "1 (GEMM)", 1, 75}}}});
  const Finding found = only(said(selection_findings(read())));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.sentence, HasSubstr("3 of 60 times"));
  EXPECT_EQ(
      found.remedy,
      "Select once, keep the algorithm with its kind of math, and not the usual one: it takes "
      "longer.");
}

TEST_F(Selections, DifferBetweenProcessesThatAreAgreedInThemselves) {
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 20, 100}});
  process("convolution/selection/shape:a", {{0, "0 (direct)", 20, 150}});
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 20, 100}});
  const auto counts = selection_counts(read());
  ASSERT_THAT(counts, SizeIs(1));
  EXPECT_EQ(counts[0].algorithm, "1 (GEMM)") << "by name: its number is the other's, too";
  EXPECT_DOUBLE_EQ(counts[0].flip_rate(), 1.0 / 3);
  EXPECT_EQ(counts[0].flip_rate_within(), 0);
  EXPECT_EQ(counts[0].other_processes, 1);
  EXPECT_DOUBLE_EQ(*counts[0].others_times, 1.5) << "beside its time in another process";
}

TEST_F(Selections, ThatDifferBetweenEquallyFastOnesAreANote) {
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 19, 100}, {1, "0 (direct)", 1, 101}});
  const Finding found = only(said(selection_findings(read())));
  EXPECT_EQ(found.severity, Severity::note);
}

TEST_F(Selections, OfWhatHasNoTimeDifferWithoutACost) {
  process("convolution/selection/shape:a",
          {{0, "1 (GEMM)", 18, 100}, {1, "6 (Winograd)", 2, std::nullopt}});
  const SessionData session = read();
  EXPECT_EQ(selection_counts(session)[0].others_times, std::nullopt);
  const Finding found = only(said(selection_findings(session)));
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_THAT(found.sentence, HasSubstr("2 of 20 times it was another than the usual one."));
  EXPECT_EQ(found.share, std::nullopt);
}

TEST_F(Selections, OfWhichNoneTookPlaceAreNone) {
  process("convolution/selection/shape:a", {{0, "1 (GEMM)", 0, 100}});
  EXPECT_THAT(selection_counts(read()), IsEmpty());
}

TEST_F(Selections, CandidatesAreNone) {
  RecordWriter writer = begin_run("GPU-1", "plain", "matmul", 0);
  Choice choice;
  choice.case_name = "matmul/choice/shape:a";
  choice.by = "cuBLASLt";
  choice.outcome = "chosen";
  writer.write(record_to_json(choice));
  end(writer);
  EXPECT_THAT(selection_counts(read()), IsEmpty());
}

}  // namespace
}  // namespace launchgap
