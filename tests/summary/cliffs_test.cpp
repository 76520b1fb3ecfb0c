#include "harness/summary/cliffs.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "harness/measure/benchmark.h"
#include "harness/summary/summary.h"
#include "harness/summary/table_makers.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {
namespace {

using namespace testing;

std::string square(int size) {
  return fmt::format("matmul/shapes/shape:{0}x{0}x{0}/library:cublas/type:fp16", size);
}

/// Products of one GPU, each with a time per process.
struct Cliffs : ::testing::Test {
  Cliffs() {
    session.devices = {a_device("GPU-1", "Some GPU")};
    session.random_order = true;
  }

  static CaseKey key(const std::string& name, const char* arm = "plain") {
    return {"GPU-1", arm, ProcessConfig("matmul"), CaseName::parse(name)};
  }

  void add(const std::string& name, double ns, int processes = 10, const char* arm = "plain") {
    CaseData& data = session.cases[key(name, arm)];
    data.metric_order = {"tflops", metric};
    for (int i = 0; i < processes; ++i)
      data.samples[metric][i] = {ns, ns * (1 + 1e-3 * i), ns * (1 + 2e-3 * i)};
  }

  void add_squares(int processes = 10) {
    for (int size = 2040; size < 2050; ++size)
      add(square(size), size == 2044 ? 1220 : 1000 + size % 10, processes);
  }

  SessionData session;
  std::string metric = "device_ns";
};

/// "series size" of each.
std::vector<std::string> names(const std::string& name) {
  std::vector<std::string> all;
  for (const SizedName& sized : series_of(CaseName::parse(name)))
    all.push_back(fmt::format("{} {}", sized.name, sized.size));
  return all;
}

TEST_F(Cliffs, AreOfSizesThatDifferInOneNumber) {
  EXPECT_THAT(names("matmul/shapes/shape:16x64x64-nt-b32/type:fp16"),
              UnorderedElementsAre("matmul/shapes/shape:*x64x64-nt-b32/type:fp16 16",
                                   "matmul/shapes/shape:16x*x64-nt-b32/type:fp16 64",
                                   "matmul/shapes/shape:16x64x*-nt-b32/type:fp16 64",
                                   "matmul/shapes/shape:16x*x*-nt-b32/type:fp16 64",
                                   "matmul/shapes/shape:16x64x64-nt-b*/type:fp16 32"));
  EXPECT_THAT(names("convolution/shapes/shape:8x64x64x64-3x5x7"),
              IsSupersetOf({"convolution/shapes/shape:8x64x*x*-3x5x7 64",
                            "convolution/shapes/shape:8x*x*x*-3x5x7 64"}));
  EXPECT_THAT(names("convolution/library/layer:conv1_7x7/n:8/type:fp16"),
              ElementsAre("convolution/library/layer:conv1_7x7/n:*/type:fp16 8"));
  EXPECT_THAT(names("allocation/latency/allocator:direct/bytes:65536"),
              ElementsAre("allocation/latency/allocator:direct/bytes:* 65536"));
  EXPECT_THAT(names("launch/null/api:driver/mode:idle"), IsEmpty());
  EXPECT_THAT(names("launch/args/bytes:0/mode:idle"), IsEmpty()) << "0 has no larger one";
}

TEST_F(Cliffs, AreNotOfDatesNorOfNumbersThatBeginWithZeroNorOfWords) {
  EXPECT_THAT(names("a/b/day:2024-01-05"), IsEmpty());
  EXPECT_THAT(names("a/b/day:2024-11-15/size:7"), ElementsAre("a/b/day:2024-11-15/size:* 7"));
  EXPECT_THAT(names("a/b/shape:064x64x64"), IsEmpty()) << "else it is twice in a series";
  EXPECT_THAT(names("a/b/bytes:0512"), IsEmpty());
  for (const char* const value : {"7-up", "b32", "3x3conv", "x3", "3x", "1x2y3", "64-64", "s2-p1"})
    EXPECT_THAT(names(std::string("a/b/which:") + value), IsEmpty()) << value;
}

TEST_F(Cliffs, OfMoreThanSixteenNumbersHaveNoSizes) {
  std::string value = "1";
  for (int i = 2; i <= 16; ++i) value += "x" + std::to_string(i);
  EXPECT_THAT(names("a/b/shape:" + value), SizeIs(16));
  EXPECT_THAT(names("a/b/shape:" + value + "x17"), IsEmpty());
  EXPECT_THAT(names("a/b/shape:" + value + "-17x18"), IsEmpty());
  for (int i = 17; i <= 20'000; ++i) value += "x" + std::to_string(i);
  EXPECT_THAT(names("a/b/shape:" + value), IsEmpty());
}

TEST_F(Cliffs, AreOfEachTimeButOfMeansOverWhatALargerCaseHasMoreOf) {
  for (int size = 100; size < 110; ++size) {
    const std::string name = fmt::format("allocation/latency/allocator:direct/bytes:{}", size);
    CaseData& data = session.cases[key(name)];
    data.metric_order = {"call_ns", "free_ns", "per_op_ns", "copy_gbs"};
    for (int i = 0; i < 10; ++i) {
      data.samples["call_ns"][i] = data.samples["copy_gbs"][i] = {100 + 0.01 * i};
      data.samples["free_ns"][i] = {(size == 104 ? 120 : 100) + 0.01 * i};
      data.samples["per_op_ns"][i] = {1e4 / size};
    }
  }
  std::set<std::string> cliffs, metrics;
  for (const CliffRow& row : cliff_rows(session)) {
    metrics.insert(row.metric);
    if (row.cliff) cliffs.insert(fmt::format("{} {}", row.metric, row.size));
  }
  EXPECT_THAT(metrics, ElementsAre("call_ns", "free_ns"));
  EXPECT_THAT(cliffs, ElementsAre("free_ns 104"));
  EXPECT_EQ(only(cliff_findings(session)).sentence,
            "104 takes 1.20 times as long as 105 in allocation/latency/allocator:direct/bytes:* "
            "(free_ns).");
}

TEST_F(Cliffs, OfLaunchesAndAllocationsAreOfTheirSizes) {
  const DeviceFacts device;
  std::set<std::string> families;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const CaseName& name : benchmark.cases(Profile::full, device)) {
      const auto is_size = [](const auto& param) {
        return (param.first == "bytes" || param.first == "kib") && param.second != "0";
      };
      const auto found = std::ranges::find_if(name.params, is_size);
      if (found == name.params.end()) continue;
      EXPECT_THAT(names(name.text()), Contains(EndsWith(" " + found->second)));
      families.insert(name.family());
      add(name.text(), 100);
    }
  }
  EXPECT_THAT(families, IsSupersetOf({"launch", "allocation"}));
  for (const CliffRow& row : cliff_rows(session)) EXPECT_EQ(row.verdict(), "none");
}

TEST_F(Cliffs, HaveARowPerSizeThatHasALargerOne) {
  add_squares();
  const std::vector<CliffRow> rows = cliff_rows(session);
  ASSERT_THAT(rows, SizeIs(9)) << "all but the last";
  for (const CliffRow& row : rows) {
    EXPECT_EQ(row.name, "matmul/shapes/shape:*x*x*/library:cublas/type:fp16");
    EXPECT_EQ(row.metric, "device_ns");
    EXPECT_EQ(row.verdict(), row.size == 2044 ? "cliff" : "none") << row.size;
  }
  EXPECT_EQ(rows[4].pad_to, 2045);
  EXPECT_NEAR(rows[4].gain, 1220.0 / 1005, 1e-3);

  const auto lines = lines_of(cliffs_table(), session);
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_EQ(fmt::format("{}", fmt::join(lines[0], ",")),
            "GPU-1,matmul/shapes,matmul/shapes/shape:*x*x*/library:cublas/type:fp16,matmul,"
            "device_ns,2040,2040,1,,,none,10");
}

TEST_F(Cliffs, OfFewProcessesAreGainsWithoutAVerdict) {
  add_squares(9);
  const std::vector<CliffRow> rows = cliff_rows(session);
  ASSERT_THAT(rows, SizeIs(9));
  EXPECT_EQ(rows[4].verdict(), "too few processes");
  EXPECT_NEAR(rows[4].gain, 1220.0 / 1005, 1e-3);
  EXPECT_THAT(cliff_findings(session), IsEmpty());
}

TEST_F(Cliffs, RunsAreTheProcessesThatHaveATimeOfTheSize) {
  add_squares(12);
  session.cases[key(square(2042))].samples["device_ns"].erase(3);
  session.cases[key(square(2044))].samples["device_ns"][3] = {};
  const std::vector<CliffRow> rows = cliff_rows(session);
  ASSERT_THAT(rows, SizeIs(9));
  EXPECT_EQ(rows[1].processes, 12u);
  EXPECT_EQ(rows[2].processes, 11u);
  EXPECT_EQ(rows[4].processes, 11u);
  EXPECT_EQ(rows[4].verdict(), "cliff") << "eleven processes have all sizes";
}

TEST_F(Cliffs, HaveNoVerdictWhereTheOrderWasNotRandom) {
  session.random_order = false;
  add_squares();
  const std::vector<CliffRow> rows = cliff_rows(session);
  ASSERT_THAT(rows, SizeIs(9));
  for (const CliffRow& row : rows) {
    EXPECT_EQ(row.verdict(), "order not random");
    EXPECT_FALSE(row.interval || row.cliff);
  }
  EXPECT_NEAR(rows[4].gain, 1220.0 / 1005, 1e-3);
  EXPECT_THAT(cliff_findings(session), IsEmpty());
}

TEST_F(Cliffs, AreNotOfFourSizesNorOfSizesFarApartNorOfTracedRuns) {
  for (const int size : {100, 101, 102, 103}) add(square(size), size == 101 ? 200 : 100);
  for (const int size : {16, 32, 64, 128, 256}) add(fmt::format("a/b/bytes:{}", size), 1000 - size);
  for (int size = 40; size < 50; ++size)
    add(fmt::format("c/d/bytes:{}", size), size == 44 ? 900 : 100, 10, "traced");
  EXPECT_THAT(cliff_rows(session), IsEmpty());
}

TEST_F(Cliffs, AreNotOfRatesThatCannotBe) {
  session.devices[0].name = "NVIDIA A100-SXM4-80GB";
  add_squares();
  add(square(2049), 100);  // a wrong library is fast
  ASSERT_EQ(cliff_rows(session)[0].pad_to, 2049);
  CaseData& fast = session.cases[key(square(2049))];
  for (int i = 0; i < 10; ++i) fast.samples["tflops"][i] = {5000};
  const std::vector<CliffRow> rows = cliff_rows(session);
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows[0].pad_to, 2040);
  EXPECT_EQ(rows[4].verdict(), "cliff");
}

TEST_F(Cliffs, AreSaidWithWhatDiffers) {
  add_squares();
  session.cases[key(square(2044))].algorithms = {{0, "algorithm 21"}};
  session.cases[key(square(2045))].algorithms = {{0, "algorithm 6"}};
  const Finding found = only(said(cliff_findings(session)));
  EXPECT_EQ(
      in_words(found),
      "act cliff: "
      "2044 takes 1.21 times as long as 2045 in "
      "matmul/shapes/shape:*x*x*/library:cublas/type:fp16, by another algorithm: algorithm 21 "
      "in place of algorithm 6.");
  EXPECT_EQ(found.remedy, "Pad 2044 to 2045 where the program may.");
  EXPECT_EQ(found.cases, square(2044) + " " + square(2045));
  ASSERT_THAT(found.evidence, SizeIs(1));
  EXPECT_THAT(text_of(found.evidence[0]), HasSubstr("2044 against 2045: 1.21 (99 % 1.2"));

  add(square(2047), 1300);
  EXPECT_THAT(only(said(cliff_findings(session))).sentence,
              AllOf(HasSubstr("2047 takes 1.29 times as long as 2048"),
                    HasSubstr(" Of 10 sizes, 2 take longer than a larger one.")));
}

TEST_F(Cliffs, AreSaidWithTheWavesThatTheLibraryTells) {
  add_squares();
  const auto method = [](const char* waves) {
    return fmt::format(
        "cuBLASLt 13.1 cublasLtMatmul, FP32, candidate 1 of 8: algorithm 6, tile 5, stages 3, "
        "split "
        "1, {} waves, workspace 32 MiB; 4 per sample",
        waves);
  };
  session.cases[key(square(2044))].method = method("2.10");
  session.cases[key(square(2045))].method = method("1.94");
  const Finding found = only(said(cliff_findings(session)));
  EXPECT_THAT(found.sentence, HasSubstr("type:fp16, 2.1 waves against 1.9."));
  EXPECT_THAT(text_of(found.evidence[0]), HasSubstr("), 2.1 waves against 1.9"));

  session.cases[key(square(2045))].method = "cuBLAS 13.1 cublasGemmEx; beside: " + method("1.94");
  EXPECT_THAT(cliff_findings(session)[0].sentence, Not(HasSubstr("waves")))
      << "another library did the work";
}

TEST_F(Cliffs, OfSeriesThatDifferInTheirMetricAloneAreSaidApart) {
  add_squares();
  metric = "kernel_ns";
  for (int size = 3040; size < 3050; ++size) add(square(size), size == 3044 ? 1220 : 1000);
  const auto findings = cliff_findings(session);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[0].sentence, HasSubstr("2044 takes 1.21 times"));
  EXPECT_THAT(findings[1].sentence, HasSubstr("3044 takes 1.22 times"));
}

TEST_F(Cliffs, AreOfSizesOfTwelveDigitsAtMost) {
  EXPECT_THAT(names("a/b/bytes:123456789012"), ElementsAre("a/b/bytes:* 123456789012"));
  EXPECT_THAT(names("a/b/bytes:1234567890123"), IsEmpty());
  EXPECT_THAT(names("a/b/bytes:"), IsEmpty());
  EXPECT_THAT(names("a/b/bytes:1,2"), IsEmpty());
}

TEST_F(Cliffs, OfABatchAreItsNumberBehindTheShape) {
  EXPECT_THAT(names("a/b/shape:2x3-b4"),
              ElementsAre("a/b/shape:*x3-b4 2", "a/b/shape:2x*-b4 3", "a/b/shape:2x3-b* 4"));
  EXPECT_THAT(names("a/b/shape:b4-2x3"), ElementsAre("a/b/shape:b4-*x3 2", "a/b/shape:b4-2x* 3"));
  EXPECT_THAT(names("a/b/shape:2x3-b"), SizeIs(2));
  EXPECT_THAT(names("a/b/shape:2x3-b04"), SizeIs(2));
}

TEST_F(Cliffs, OfEqualNumbersAreOfNeighboursAndOfAllTogether) {
  EXPECT_THAT(names("a/b/shape:5x5"),
              ElementsAre("a/b/shape:*x5 5", "a/b/shape:5x* 5", "a/b/shape:*x* 5"));
  EXPECT_THAT(
      names("a/b/shape:5x6x5"),
      ElementsAre(
          "a/b/shape:*x6x5 5", "a/b/shape:5x*x5 6", "a/b/shape:5x6x* 5", "a/b/shape:*x6x* 5"));
  EXPECT_THAT(names("a/b/shape:55x55-7x7"),
              ElementsAre("a/b/shape:*x55-7x7 55",
                          "a/b/shape:55x*-7x7 55",
                          "a/b/shape:*x*-7x7 55",
                          "a/b/shape:55x55-*x7 7",
                          "a/b/shape:55x55-7x* 7",
                          "a/b/shape:55x55-*x* 7"));
}

TEST_F(Cliffs, AreOfFiveSizesOfWhichOneIsAQuarterLarger) {
  for (const int size : {4, 5, 7, 9, 12}) add(fmt::format("a/b/bytes:{}", size), 1000 - size);
  std::vector<double> sizes;
  for (const CliffRow& row : cliff_rows(session)) sizes.push_back(row.size);
  EXPECT_THAT(sizes, ElementsAre(4)) << "5 is a quarter larger, and no other";
}

TEST_F(Cliffs, OfWhatOthersHavePublishedAreTooAndOfATimeThatIsNoneNot) {
  for (int size = 100; size < 110; ++size) {
    add(fmt::format("a/b/bytes:{}", size), 100, 10, "published");
    CaseData& data = session.cases[key(fmt::format("c/d/bytes:{}", size))];
    data.metric_order = {"tflops", "no_such_ns", "wall_ns"};
    data.samples["tflops"][0] = data.samples["no_such_ns"][0] = {5};
  }
  for (const CliffRow& row : cliff_rows(session)) EXPECT_EQ(row.key.name.benchmark, "a/b");
  EXPECT_THAT(cliff_rows(session), SizeIs(9));
}

TEST_F(Cliffs, SayNoOtherAlgorithmWhereItIsTheSameOrNotKnown) {
  add_squares();
  const auto sentence = [&] { return only(cliff_findings(session)).sentence; };
  session.cases[key(square(2044))].algorithms = {{0, "algorithm 6"}};
  EXPECT_THAT(sentence(), EndsWith("type:fp16."));
  session.cases[key(square(2045))].algorithms = {{0, "algorithm 6"}};
  EXPECT_THAT(sentence(), EndsWith("type:fp16."));
  session.cases[key(square(2044))].algorithms = {};
  EXPECT_THAT(sentence(), EndsWith("type:fp16."));
}

}  // namespace
}  // namespace launchgap
